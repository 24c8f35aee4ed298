// ProgramCost: what a step of a program must read and compute, and the least time it can take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/backend/cpu/ceilings.h"
#include "quire/backend/dryrun/step_cost.h"
#include "quire/backend/program.h"

namespace quire::bench {

/// The type of activations that `op` multiplies: a matmul's input, or the KV cache's type.
backend::ActType arithmetic_of(const backend::Program& program, const backend::Op& op);

/// The peak for activations of a type; bf16's is fp32's where there is no instruction for it.
double peak_of(const backend::cpu::Ceilings& ceilings, backend::ActType act);

struct ProgramCost {
  double bytes = 0;                                    // weights and KV pages, each once a step
  double operations = 0;                               // of matmuls and attention
  backend::ActType main_act = backend::ActType::kF32;  // of most of them
};

/// Operations [first_op, last_op) of one step.
ProgramCost cost_of_ops(const backend::Program& program,
                        const std::vector<backend::dryrun::OpCost>& costs, size_t first_op,
                        size_t last_op);
ProgramCost cost_of_step(const backend::Program& program, const backend::dryrun::StepShape& step);

/// Seconds that operations [first_op, last_op) take at least: the sum over operations of the larger
/// of their weight and KV bytes over the bandwidth, and their operations over their own type's
/// peak.
double roofline_seconds(const backend::Program& program,
                        const std::vector<backend::dryrun::OpCost>& costs, size_t first_op,
                        size_t last_op, const backend::cpu::Ceilings& ceilings);

}  // namespace quire::bench
