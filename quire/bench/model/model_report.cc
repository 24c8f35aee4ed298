#include "quire/bench/model/model_report.h"

#include <filesystem>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/progress.h"
#include "quire/bench/kernels/kernel_bench.h"
#include "quire/bench/machine/ceilings_report.h"
#include "quire/bench/text_table.h"

namespace quire::bench {
namespace {

namespace json = boost::json;

std::string test_name(const ModelRate& rate) {
  if (rate.is_prefill) return fmt::format("prefill {}", rate.tokens);
  return fmt::format("decode {} x, context {}", rate.batch, rate.tokens);
}

std::string number(double value) {
  return value > 0 ? fmt::format("{:.1f}", value) : "-";
}

std::string rate_table(const ModelBenchResult& result, bool markdown) {
  TextTable table({"test", "tokens/s", "a prompt or step", "GB/s", "of read", "GOP/s",
                   fmt::format("of {} peak", act_name(result.main_act))});
  for (const ModelRate& rate : result.rates) {
    table.add({test_name(rate), number(rate.tokens_per_s), time_text(rate.seconds),
               number(rate.gbs), percent_text(rate.read_share, 1), number(rate.gops),
               percent_text(rate.peak_share, 1)});
  }
  return markdown ? table.markdown() : table.text();
}

std::string op_table(const OpTable& ops, bool markdown) {
  TextTable table(
      {"operations", "in a step", "time", "of the step", "GB/s", "GOP/s", "of roofline"});
  for (const OpLine& line : ops.lines) {
    table.add({line.name, std::to_string(line.count), time_text(line.seconds),
               fmt::format("{:.1f} %", 100 * line.share), number(line.gbs), number(line.gops),
               line.roofline > 0 ? percent_text(line.roofline, 1) : "-"});
  }
  return fmt::format("\n{}: {} of operations\n{}\n{}", test_name(ops.step),
                     time_text(ops.step.seconds), format_ceilings(ops.ceilings),
                     markdown ? table.markdown() : table.text());
}

json::object rate_json(const ModelRate& rate) {
  return {{"test", rate.is_prefill ? "prefill" : "decode"},
          {"batch", rate.batch},
          {"tokens", rate.tokens},
          {"seconds", rate.seconds},
          {"tokens_per_s", rate.tokens_per_s},
          {"gbs", rate.gbs},
          {"share_of_read", rate.read_share},
          {"gops", rate.gops},
          {"share_of_peak", rate.peak_share}};
}

json::object ops_json(const OpTable& ops) {
  json::array lines;
  for (const OpLine& line : ops.lines) {
    lines.push_back({{"name", line.name},
                     {"count", line.count},
                     {"seconds", line.seconds},
                     {"share_of_step", line.share},
                     {"gbs", line.gbs},
                     {"gops", line.gops},
                     {"share_of_roofline", line.roofline}});
  }
  return {{"test", ops.step.is_prefill ? "prefill" : "decode"},
          {"batch", ops.step.batch},
          {"tokens", ops.step.tokens},
          {"seconds", ops.step.seconds},
          {"ceilings", ceilings_json(ops.ceilings)},
          {"lines", std::move(lines)}};
}

}  // namespace

std::string format_model(const ModelBenchResult& result, bool markdown) {
  std::string out = fmt::format("{}, weights of {}, {}, medians of {} rounds\n{}\n{}",
                                std::filesystem::path(result.model).filename().string(),
                                format_bytes(result.weight_bytes), result.backend, result.rounds,
                                format_ceilings(result.ceilings), rate_table(result, markdown));
  for (const OpTable& ops : result.ops) out += op_table(ops, markdown);
  return out;
}

json::object model_json(const ModelBenchResult& result) {
  json::array rates;
  for (const ModelRate& rate : result.rates) rates.push_back(rate_json(rate));
  json::array ops;
  for (const OpTable& table : result.ops) ops.push_back(ops_json(table));
  return {{"model", result.model},
          {"backend", result.backend},
          {"weight_bytes", result.weight_bytes},
          {"peak_of", act_name(result.main_act)},
          {"rounds", result.rounds},
          {"ceilings", ceilings_json(result.ceilings)},
          {"rates", std::move(rates)},
          {"ops", std::move(ops)}};
}

}  // namespace quire::bench
