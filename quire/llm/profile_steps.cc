#include "quire/llm/profile_steps.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "quire/backend/dryrun/program_memory.h"
#include "quire/backend/dryrun/step_cost.h"

namespace quire::llm {
namespace {

using backend::dryrun::OpCost;

backend::dryrun::StepShape shape_of(const sched::BatchPlan& plan) {
  backend::dryrun::StepShape shape;
  for (const sched::PlanRow& row : plan.rows) {
    shape.rows.push_back({.new_tokens = row.num_tokens, .context_len = row.context_len});
  }
  shape.num_logits = static_cast<int64_t>(plan.logits_rows.size());
  return shape;
}

/// "matmul int4 group 32 x i8", "attention".
std::string kind_label(const backend::Program& program, const backend::Op& op) {
  std::string label(backend::op_kind_name(op.kind));
  if (op.kind != backend::OpKind::kMatmul) return label;
  const auto& weight = *program.weights[static_cast<size_t>(op.weight)];
  label += " " + backend::dryrun::layout_text(weight.spec);
  switch (program.tensors[static_cast<size_t>(op.in[0])].form) {
    case backend::TensorForm::kPreparedI8:
      return label + " x int8";
    case backend::TensorForm::kPreparedBF16:
      return label + " x bf16";
    case backend::TensorForm::kPlain:
      return label + " x fp32";
  }
  return label;
}

/// Operations a nanosecond at most: by the arithmetic that the kernel of `op` is made of.
double peak_of(const backend::Program& program, const backend::Op& op,
               const RooflineCeilings& ceilings) {
  if (op.kind != backend::OpKind::kMatmul) return ceilings.fp32_gflops;
  switch (program.tensors[static_cast<size_t>(op.in[0])].form) {
    case backend::TensorForm::kPreparedI8:
      return ceilings.int8_gops > 0 ? ceilings.int8_gops : ceilings.fp32_gflops;
    case backend::TensorForm::kPreparedBF16:
      return ceilings.bf16_gflops > 0 ? ceilings.bf16_gflops : ceilings.fp32_gflops;
    case backend::TensorForm::kPlain:
      return ceilings.fp32_gflops;
  }
  return ceilings.fp32_gflops;
}

/// The least time the line can take: the longest of its arithmetic at the peak, weights and KV at
/// memory's bandwidth, and all bytes at the cache's. A nanosecond at 1 GB/s is a byte.
double ideal_ns(const OpCost& cost, double peak, const RooflineCeilings& ceilings) {
  const auto time = [](int64_t amount, double rate) {
    return rate > 0 ? static_cast<double>(amount) / rate : 0.0;
  };
  return std::max({time(cost.operations, peak),
                   time(cost.weight_bytes + cost.kv_bytes, ceilings.memory_gbs),
                   time(cost.bytes(), ceilings.cache_gbs)});
}

double per_ns(int64_t amount, int64_t ns) {
  return ns == 0 ? 0.0 : static_cast<double>(amount) / static_cast<double>(ns);
}

double ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

}  // namespace

std::string_view step_class_name(StepClass step_class) {
  return step_class == StepClass::kPrefill ? "prefill" : "decode";
}

StepClass class_of(const sched::BatchPlan& plan) {
  const bool prefills = std::any_of(plan.rows.begin(), plan.rows.end(),
                                    [](const sched::PlanRow& row) { return row.num_tokens > 1; });
  return prefills ? StepClass::kPrefill : StepClass::kDecode;
}

void OpTotals::add(const OpTotals& other) {
  calls += other.calls;
  ns += other.ns;
  operations += other.operations;
  weight_bytes += other.weight_bytes;
  act_bytes += other.act_bytes;
  kv_bytes += other.kv_bytes;
  ideal_ns += other.ideal_ns;
}

void StepProfiler::observe(const StepRecord& record) {
  StepTotals& totals = classes_[static_cast<size_t>(class_of(record.plan))];
  ++totals.steps;
  totals.tokens += static_cast<int64_t>(record.plan.tokens.size());
  totals.step_ns += record.sample.end_ns - record.launch_ns;
  totals.forward_ns += record.forward.step.duration();
  totals.sample_ns += record.sample.duration();
  const backend::Program& program = record.program;
  if (totals.lines.empty()) {
    for (const backend::Op& op : program.ops) {
      totals.lines.push_back({.name = op.name, .kind = kind_label(program, op), .totals = {}});
    }
  }
  const std::vector<OpCost> costs = backend::dryrun::step_cost(program, shape_of(record.plan));
  for (size_t i = 0; i < costs.size(); ++i) {
    const OpCost& cost = costs[i];
    totals.lines[i].totals.add(
        {.calls = 1,
         .ns = record.forward.op_ns[i],
         .operations = cost.operations,
         .weight_bytes = cost.weight_bytes,
         .act_bytes = cost.act_bytes,
         .kv_bytes = cost.kv_bytes,
         .ideal_ns = ideal_ns(cost, peak_of(program, program.ops[i], ceilings_), ceilings_)});
  }
}

std::vector<ProfileLine> by_kind(const StepTotals& totals) {
  std::map<std::string, OpTotals> sums;
  for (const ProfileLine& line : totals.lines) sums[line.kind].add(line.totals);
  std::vector<ProfileLine> kinds;
  for (const auto& [kind, sum] : sums) kinds.push_back({kind, kind, sum});
  std::stable_sort(kinds.begin(), kinds.end(), [](const ProfileLine& a, const ProfileLine& b) {
    return a.totals.ns > b.totals.ns;
  });
  return kinds;
}

std::string format_profile(const StepProfiler& profiler, StepClass step_class, bool by_line) {
  const StepTotals& totals = profiler.totals(step_class);
  if (totals.steps == 0) return "";
  const bool roofline = profiler.ceilings().memory_gbs > 0;
  std::string text = fmt::format(
      "{}: {} step{}, {} tokens, {:.2f} ms: {:.3f} ms a step, {:.1f} tokens/s\n"
      "program {:.2f} ms, sampling {:.2f} ms\n",
      step_class_name(step_class), totals.steps, totals.steps == 1 ? "" : "s", totals.tokens,
      ms(totals.step_ns), ms(totals.step_ns) / static_cast<double>(totals.steps),
      per_ns(totals.tokens, totals.step_ns) * 1e9, ms(totals.forward_ns), ms(totals.sample_ns));
  const std::vector<ProfileLine> lines = by_line ? totals.lines : by_kind(totals);
  size_t width = 9;
  for (const ProfileLine& line : lines) width = std::max(width, line.name.size());
  fmt::format_to(std::back_inserter(text), "{:<{}} {:>7} {:>10} {:>7} {:>8} {:>9}{}\n", "operation",
                 width, "calls", "ms", "share", "GB/s", "GOP/s", roofline ? "  of roofline" : "");
  OpTotals sum;
  const auto row = [&](std::string_view name, const OpTotals& of) {
    fmt::format_to(std::back_inserter(text), "{:<{}} {:>7} {:>10.3f} {:>6.1f}% {:>8.2f} {:>9.2f}",
                   name, width, of.calls, ms(of.ns), 100.0 * per_ns(of.ns, totals.forward_ns),
                   per_ns(of.bytes(), of.ns), per_ns(of.operations, of.ns));
    if (roofline && of.ns > 0) {
      fmt::format_to(std::back_inserter(text), " {:>11.1f}%",
                     100.0 * of.ideal_ns / static_cast<double>(of.ns));
    }
    text += "\n";
  };
  for (const ProfileLine& line : lines) {
    row(line.name, line.totals);
    sum.add(line.totals);
  }
  row("total", sum);
  return text;
}

}  // namespace quire::llm
