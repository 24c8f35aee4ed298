// KernelProgram: one operation as a program of its own: repeated over so much memory that no cache
// holds it until it comes round again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/program.h"
#include "quire/backend/step_meta.h"

namespace quire::bench {

struct KernelProgram {
  std::shared_ptr<const backend::Program> program;
  /// Operations [first_op, end_op) are the repetitions that count; one before them warms up.
  int32_t first_op = 0;
  int32_t end_op = 0;
  int32_t repetitions = 0;
};

/// x = embed(table); then for every weight y = W x, with x prepared anew each time. `weights` have
/// the same spec, and are two or more.
KernelProgram linear_program(const std::shared_ptr<const backend::PackedWeight>& table,
                             std::span<const std::shared_ptr<const backend::PackedWeight>> weights,
                             backend::ActType act, int64_t max_tokens);

/// q = embed(table); then attention over each of the cache group's layers, two or more.
KernelProgram attention_program(const std::shared_ptr<const backend::PackedWeight>& table,
                                const backend::AttentionShape& shape,
                                const backend::CacheGroupSpec& group, int64_t max_tokens);

/// Copies of `bytes` that it takes to fill `cold_bytes`, and the one that warms up: 3 to 1,024.
int64_t num_copies(int64_t bytes, int64_t cold_bytes);

/// Runs one step on `backend`, which has loaded kernel.program and times its operations: seconds of
/// one repetition.
double seconds_a_repetition(backend::cpu::CpuBackend& backend, const KernelProgram& kernel,
                            const backend::StepMeta& meta);

}  // namespace quire::bench
