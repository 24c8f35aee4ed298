#include "quire/bench/model/program_cost.h"

#include <algorithm>
#include <array>

namespace quire::bench {
namespace {

using backend::ActType;
using backend::Op;
using backend::OpKind;
using backend::Program;
using backend::dryrun::OpCost;

bool multiplies(OpKind kind) {
  return kind == OpKind::kMatmul || kind == OpKind::kAttention;
}

/// What is read from memory. Storing a token's keys and values reads nothing.
double bytes_read(const OpCost& cost) {
  return static_cast<double>(cost.weight_bytes +
                             (cost.kind == OpKind::kStoreKv ? 0 : cost.kv_bytes));
}

}  // namespace

ActType arithmetic_of(const Program& program, const Op& op) {
  if (op.kind == OpKind::kAttention) {
    const auto& group = program.cache_groups[static_cast<size_t>(op.cache_group)];
    return group.dtype == DType::kF32 ? ActType::kF32 : ActType::kBF16;
  }
  if (op.kind != OpKind::kMatmul) return ActType::kF32;
  switch (program.tensors[static_cast<size_t>(op.in[0])].form) {
    case backend::TensorForm::kPlain:
      return ActType::kF32;
    case backend::TensorForm::kPreparedBF16:
      return ActType::kBF16;
    case backend::TensorForm::kPreparedI8:
      return ActType::kI8;
  }
  return ActType::kF32;
}

double peak_of(const backend::cpu::Ceilings& ceilings, ActType act) {
  if (act == ActType::kI8) return ceilings.int8_gops;
  if (act == ActType::kBF16 && ceilings.bf16_gflops > 0) return ceilings.bf16_gflops;
  return ceilings.fp32_gflops;
}

ProgramCost cost_of_ops(const Program& program, const std::vector<OpCost>& costs, size_t first_op,
                        size_t last_op) {
  ProgramCost cost;
  std::array<double, 3> by_act = {};
  for (size_t i = first_op; i < last_op; ++i) {
    cost.bytes += bytes_read(costs[i]);
    if (!multiplies(costs[i].kind)) continue;
    const auto operations = static_cast<double>(costs[i].operations);
    cost.operations += operations;
    by_act[static_cast<size_t>(arithmetic_of(program, program.ops[i]))] += operations;
  }
  const auto most = std::max_element(by_act.begin(), by_act.end()) - by_act.begin();
  cost.main_act = static_cast<ActType>(most);
  return cost;
}

ProgramCost cost_of_step(const Program& program, const backend::dryrun::StepShape& step) {
  return cost_of_ops(program, backend::dryrun::step_cost(program, step), 0, program.ops.size());
}

double roofline_seconds(const Program& program, const std::vector<OpCost>& costs, size_t first_op,
                        size_t last_op, const backend::cpu::Ceilings& ceilings) {
  double seconds = 0;
  for (size_t i = first_op; i < last_op; ++i) {
    const double reading =
        ceilings.read_gbs > 0 ? bytes_read(costs[i]) / ceilings.read_gbs / 1e9 : 0;
    const double peak = peak_of(ceilings, arithmetic_of(program, program.ops[i]));
    const bool computes = multiplies(costs[i].kind) && peak > 0;
    const double computing = computes ? static_cast<double>(costs[i].operations) / peak / 1e9 : 0;
    seconds += std::max(reading, computing);
  }
  return seconds;
}

}  // namespace quire::bench
