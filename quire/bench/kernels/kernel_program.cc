#include "quire/bench/kernels/kernel_program.h"

#include <algorithm>
#include <utility>

#include "quire/backend/program_builder.h"
#include "quire/base/check.h"

namespace quire::bench {
namespace {

using backend::Op;
using backend::PackedWeight;
using backend::Program;
using backend::ProgramBuilder;
using backend::Tensor;

/// Repeats operations [1, last) of a program that was recorded with one of them; `change` makes
/// number `i` of an operation from the recorded one.
template <typename Change>
KernelProgram repeat(Program program, int64_t count, Change change) {
  QUIRE_CHECK(count >= 2);
  const std::vector<Op> recorded = std::move(program.ops);
  program.ops.assign(1, recorded.front());
  KernelProgram kernel;
  for (int64_t i = 0; i < count; ++i) {
    if (i == 1) kernel.first_op = static_cast<int32_t>(program.ops.size());
    for (auto op = recorded.begin() + 1; op != recorded.end() - 1; ++op) {
      Op& copy = program.ops.emplace_back(*op);
      change(copy, static_cast<int32_t>(i));
    }
  }
  kernel.end_op = static_cast<int32_t>(program.ops.size());
  kernel.repetitions = static_cast<int32_t>(count - 1);
  program.ops.push_back(recorded.back());
  kernel.program = std::make_shared<const Program>(std::move(program));
  return kernel;
}

}  // namespace

KernelProgram linear_program(const std::shared_ptr<const PackedWeight>& table,
                             std::span<const std::shared_ptr<const PackedWeight>> weights,
                             backend::ActType act, int64_t max_tokens) {
  ProgramBuilder builder({.max_tokens = max_tokens, .max_logits = 1, .cache_groups = {}});
  const Tensor x = builder.embed(table);
  builder.matmul(x, weights.front(), {}, act, "matmul");
  // Read last, so that x keeps its storage to the end. No step asks for logits.
  Program program = builder.finish(builder.gather_logits_rows(x));
  const auto first = static_cast<int32_t>(program.weights.size()) - 1;
  for (const auto& weight : weights.subspan(1)) program.weights.push_back(weight);
  return repeat(std::move(program), static_cast<int64_t>(weights.size()),
                [first](Op& op, int32_t i) {
                  if (op.weight >= 0) op.weight = first + i;
                });
}

KernelProgram attention_program(const std::shared_ptr<const PackedWeight>& table,
                                const backend::AttentionShape& shape,
                                const backend::CacheGroupSpec& group, int64_t max_tokens) {
  ProgramBuilder builder({.max_tokens = max_tokens, .max_logits = 1, .cache_groups = {group}});
  const Tensor q = builder.embed(table);
  builder.attention(q, shape, 0, 0);
  Program program = builder.finish(builder.gather_logits_rows(q));
  return repeat(std::move(program), group.num_layers, [](Op& op, int32_t i) { op.layer = i; });
}

int64_t num_copies(int64_t bytes, int64_t cold_bytes) {
  return std::clamp<int64_t>((cold_bytes + bytes - 1) / bytes + 1, 3, 1024);
}

double seconds_a_repetition(backend::cpu::CpuBackend& backend, const KernelProgram& kernel,
                            const backend::StepMeta& meta) {
  backend.reset_op_times();
  backend.launch(meta);
  backend.wait();
  int64_t nanoseconds = 0;
  for (const backend::cpu::PhaseTime& time : backend.op_times()) {
    if (time.phase.first_op >= kernel.first_op && time.phase.first_op < kernel.end_op) {
      nanoseconds += time.nanoseconds;
    }
  }
  return static_cast<double>(nanoseconds) * 1e-9 / kernel.repetitions;
}

}  // namespace quire::bench
