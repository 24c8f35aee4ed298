#include <string_view>

#include <boost/json.hpp>

#include "quire/backend/program.h"
#include "quire/plan/report.h"

namespace quire::plan {
namespace {

namespace json = boost::json;

constexpr std::string_view part_name(LedgerLine::Part part) {
  switch (part) {
    case LedgerLine::Part::kWeights:
      return "weights";
    case LedgerLine::Part::kArena:
      return "arena";
    case LedgerLine::Part::kScratch:
      return "scratch";
    case LedgerLine::Part::kOther:
      return "other";
  }
  return "?";
}

constexpr std::string_view act_name(backend::ActType act) {
  switch (act) {
    case backend::ActType::kF32:
      return "fp32";
    case backend::ActType::kBF16:
      return "bf16";
    case backend::ActType::kI8:
      return "int8";
  }
  return "?";
}

json::array pair_of(int64_t first, int64_t end) {
  return {first, end - 1};
}

json::object ledger_line(const LedgerLine& line) {
  json::object out{{"part", part_name(line.part)},    {"name", line.name},
                   {"format", line.format},           {"tensors", line.count},
                   {"parameters", line.parameters},   {"bytes", line.bytes},
                   {"scale_bytes", line.scale_bytes}, {"padding_bytes", line.padding_bytes},
                   {"estimate", line.estimate}};
  if (!line.note.empty()) out["note"] = line.note;
  return out;
}

json::object rank_json(const Plan& plan, const RankLedger& rank) {
  json::array lines;
  for (const LedgerLine& line : rank.lines) lines.push_back(ledger_line(line));
  json::array live;
  for (const auto& [name, bytes] : rank.arena_peak.live) {
    live.push_back(json::object{{"tensor", name}, {"bytes", bytes}});
  }
  const RankShare& share = rank.share;
  return {{"rank", share.rank},
          {"stage", share.stage},
          {"layers", pair_of(share.first_layer, share.end_layer)},
          {"heads", pair_of(share.first_head, share.end_head)},
          {"kv_heads", pair_of(share.first_kv_head, share.end_kv_head)},
          {"kv_replicas", share.kv_replicas},
          {"lines", std::move(lines)},
          {"weights_bytes", rank.bytes(LedgerLine::Part::kWeights)},
          {"arena_bytes", rank.bytes(LedgerLine::Part::kArena)},
          {"scratch_bytes", rank.bytes(LedgerLine::Part::kScratch)},
          {"logits_bytes", rank.logits_bytes},
          {"exact_bytes", rank.exact_bytes()},
          {"fixed_bytes", rank.fixed_bytes()},
          {"kv_token_bytes", rank.kv_token_bytes},
          {"kv_block_bytes", rank.kv_block_bytes},
          {"kv_cache_bytes", plan.pool_bytes(rank)},
          {"total_bytes", plan.total_bytes(rank)},
          {"arena_peak", json::object{{"operation", rank.arena_peak.operation},
                                      {"live_bytes", rank.arena_peak.live_bytes},
                                      {"sum_bytes", rank.arena_peak.sum_bytes},
                                      {"live", std::move(live)}}}};
}

json::object model_json(const Report& report) {
  const auto& c = report.plan->model.config;
  return {{"name", report.model},
          {"architecture", c.architecture},
          {"parameters", report.plan->parameters},
          {"layers", c.num_layers},
          {"hidden_size", c.hidden_size},
          {"heads", c.num_heads},
          {"kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"vocab_size", c.vocab_size},
          {"max_position", c.max_position},
          {"window", report.plan->model.window},
          {"tied_head", c.tie_word_embeddings},
          {"weight_format", report.plan->weight_format}};
}

json::object device_json(const Device& device) {
  json::array levels;
  for (const MemoryLevel& level : device.levels) {
    levels.push_back(json::object{{"name", level.name},
                                  {"bytes", level.bytes},
                                  {"bytes_per_second", level.bytes_per_second}});
  }
  json::array sources;
  for (const std::string& source : device.sources) sources.emplace_back(source);
  return {{"name", device.name},
          {"kind", device.kind == Device::Kind::kGpu ? "gpu" : "cpu"},
          {"workers", device.workers},
          {"measured", device.measured},
          {"peak_ops_per_second",
           json::object{
               {"fp32", device.peak_fp32}, {"bf16", device.peak_bf16}, {"int8", device.peak_int8}}},
          {"ridge_ops_per_byte", json::object{{"fp32", device.ridge(backend::ActType::kF32)},
                                              {"bf16", device.ridge(backend::ActType::kBF16)},
                                              {"int8", device.ridge(backend::ActType::kI8)}}},
          {"levels", std::move(levels)},
          {"link_bytes_per_second", device.link.bytes_per_second},
          {"host_bytes_per_second", device.host.bytes_per_second},
          {"sources", std::move(sources)}};
}

json::object line_json(const LineTime& line) {
  return {{"name", line.name},
          {"kind", backend::op_kind_name(line.kind)},
          {"activations", act_name(line.act)},
          {"operations", line.operations},
          {"bytes", line.bytes},
          {"intensity", line.intensity},
          {"ridge", line.bandwidth > 0 ? line.peak / line.bandwidth : 0.0},
          {"ceiling_ops_per_second", line.ceiling},
          {"bound", line.memory_bound ? "memory" : "compute"},
          {"level", line.level},
          {"seconds", line.seconds}};
}

json::object step_json(const StepTime& step) {
  json::array lines;
  for (const LineTime& line : step.lines) lines.push_back(line_json(line));
  json::array classes;
  for (const LineClass& each : classes_of(step.lines)) {
    json::object out = line_json(each.sum);
    out["count"] = each.count;
    classes.push_back(std::move(out));
  }
  return {{"tokens", step.tokens},
          {"operations", step.operations},
          {"bytes", step.bytes},
          {"ceiling_seconds", step.compute_seconds},
          {"overhead_seconds", step.overhead_seconds},
          {"link_seconds", step.link_seconds},
          {"fast_seconds", step.fast_seconds},
          {"slow_seconds", step.slow_seconds},
          {"classes", std::move(classes)},
          {"lines", std::move(lines)}};
}

json::array range_json(const TimeRange& range) {
  return {range.fast, range.slow};
}

json::object forecast_json(const Forecast& forecast) {
  json::array batches;
  for (const BatchPoint& p : forecast.batches) {
    batches.push_back(json::object{
        {"batch", p.batch},
        {"context", p.context},
        {"fits", p.fits},
        {"itl_seconds", range_json(p.itl)},
        {"tokens_per_second", json::array{p.slow_tokens_per_s(), p.fast_tokens_per_s()}},
        {"operations", p.operations},
        {"bytes", p.bytes},
        {"intensity", p.intensity()}});
  }
  return {{"prompt_len", forecast.prompt_len},         {"output_len", forecast.output_len},
          {"ttft_seconds", range_json(forecast.ttft)}, {"batches", std::move(batches)},
          {"prefill", step_json(forecast.prefill)},    {"decode", step_json(forecast.decode)}};
}

json::object traffic_json(const Report& report) {
  const TrafficResult& t = *report.traffic;
  return {{"users", report.users},
          {"requests", t.requests},
          {"refused", t.refused},
          {"steps", t.steps},
          {"output_tokens", t.output_tokens},
          {"mean_running", t.mean_running},
          {"peak_running", t.peak_running},
          {"mean_waiting", t.mean_waiting},
          {"mean_kv_usage", t.mean_kv_usage},
          {"peak_kv_usage", t.peak_kv_usage},
          {"preemptions", t.preemptions},
          {"preemption_probability", t.preemption_probability()},
          {"seconds", t.seconds},
          {"tokens_per_second", t.tokens_per_s},
          {"ttft_p50_seconds", t.ttft_p50},
          {"ttft_p99_seconds", t.ttft_p99},
          {"itl_mean_seconds", t.itl_mean},
          {"itl_p99_seconds", t.itl_p99}};
}

json::array alternatives_json(const std::vector<Alternative>& alternatives) {
  json::array out;
  for (const Alternative& each : alternatives) {
    out.push_back(json::object{{"change", each.change},
                               {"cost", each.cost},
                               {"fits", each.fits},
                               {"devices", each.devices},
                               {"rank_fixed_bytes", each.rank_bytes},
                               {"max_model_len", each.max_model_len},
                               {"tokens_each", each.tokens_each},
                               {"sequences", each.sequences}});
  }
  return out;
}

json::object memory_json(const Plan& plan) {
  json::array ranks;
  for (const RankLedger& rank : plan.ranks) ranks.push_back(rank_json(plan, rank));
  return {{"fits", plan.fits},
          {"problem", plan.problem},
          {"memory_bytes", plan.options.memory_bytes},
          {"budget_bytes", plan.budget_bytes()},
          {"kv_dtype", kv_dtype_name(plan.kv_dtype)},
          {"block_tokens", plan.block_tokens()},
          {"num_blocks", plan.num_blocks},
          {"max_model_len", plan.max_model_len},
          {"max_num_seqs", plan.options.max_num_seqs},
          {"max_num_batched_tokens", plan.options.record.max_tokens},
          {"concurrency", plan.fits ? plan.concurrency(plan.max_model_len) : 0.0},
          {"ranks", std::move(ranks)}};
}

}  // namespace

json::object report_json(const Report& report) {
  const Plan& plan = *report.plan;
  json::array comparisons;
  for (const Comparison& c : plan.comparisons) {
    comparisons.push_back(json::object{{"name", c.name},
                                       {"formula", c.formula},
                                       {"textbook_bytes", c.textbook},
                                       {"counted_bytes", c.counted},
                                       {"difference_bytes", c.difference()},
                                       {"why", c.why}});
  }
  json::array notes;
  for (const std::string& note : plan.model.notes) notes.emplace_back(note);
  json::object out{{"model", model_json(report)},
                   {"device", device_json(plan.options.device)},
                   {"memory", memory_json(plan)},
                   {"textbook", std::move(comparisons)},
                   {"notes", std::move(notes)}};
  if (report.forecast) out["forecast"] = forecast_json(*report.forecast);
  if (report.traffic) out["traffic"] = traffic_json(report);
  if (!report.alternatives.empty()) out["alternatives"] = alternatives_json(report.alternatives);
  if (report.config) {
    json::array settings;
    for (const Setting& s : report.config->settings) {
      settings.push_back(json::object{{"key", s.key}, {"value", s.value}, {"why", s.why}});
    }
    out["config"] = std::move(settings);
    out["command"] = report.config->command_line(report.model);
  }
  return out;
}

}  // namespace quire::plan
