// AttentionRunner: computes the items of an AttentionPlan, with the memory that partial results
// need.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/backend/cpu/attention_plan.h"
#include "quire/backend/cpu/bound_op.h"
#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu {

class AttentionRunner {
 public:
  /// Bytes of scratch one worker needs, and all share, for any of the program's attentions.
  static int64_t worker_bytes(const Program& program);
  static int64_t shared_bytes(const Program& program);

  /// `scratch` has shared_bytes() + num_workers * worker_bytes(), 64-aligned.
  AttentionRunner(const Program& program, const KernelTable& kernels, std::byte* scratch);

  /// Computes one item of one layer on worker `worker`.
  void run(const BoundAttention& op, const AttentionPlan& plan, const AttentionItem& item,
           const StepMeta& meta, int worker) const;

 private:
  /// Rows of outputs [rows][head_dim] with their maxima and sums.
  struct Partials {
    float* out;
    float* max;
    float* sum;
  };
  Partials partials_at(std::byte* memory, int64_t rows, int32_t head_dim) const;
  void clear(const Partials& state, int64_t rows, int32_t head_dim) const;
  void finish(const BoundAttention& op, const AttentionItem& item, const Partials& state) const;

  const KernelTable& kernels_;
  std::byte* shared_;
  std::byte* workers_;
  int64_t worker_bytes_;
};

}  // namespace quire::backend::cpu
