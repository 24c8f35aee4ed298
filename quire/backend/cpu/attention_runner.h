// AttentionRunner: computes the items of an AttentionPlan, with the memory that partial results
// need.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "quire/backend/cpu/attention_plan.h"
#include "quire/backend/cpu/bound_op.h"
#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu {

/// An item with the blocks it reads: all that computing it needs of the step.
struct AttentionJob {
  AttentionItem item;
  const int32_t* blocks = nullptr;  // of the sequence, from first_block on
  int32_t first_block = 0;
  bool keys_fetched = false;  // of the first split, by the job before
};

/// Pages of one split, which a worker will likely compute with next.
struct NextPages {
  std::array<const char*, kAttentionSplit / 16> pages;
  int32_t count = 0;
};

/// An item is done in two halves: compute() reads KV and queries and leaves its result in the
/// worker's own memory; commit() makes it the operation's. Between them lies what ClaimBoard needs.
class AttentionRunner {
 public:
  /// Bytes of scratch one worker needs, and all share, for any of the program's attentions.
  static int64_t worker_bytes(const Program& program);
  static int64_t shared_bytes(const Program& program);

  /// `scratch` has shared_bytes() + num_workers * worker_bytes(), 64-aligned.
  AttentionRunner(const Program& program, const KernelTable& kernels, std::byte* scratch);

  /// The job as it lies in the step, for as long as that runs.
  static AttentionJob job_in_step(const BoundAttention& op, const AttentionPlan& plan,
                                  int64_t index, const StepMeta& meta);
  /// Copies the job's blocks to where they outlive the step and others can read them. False when
  /// there is no room for that many.
  bool keep(AttentionJob& job, const BoundAttention& op, int worker) const;
  /// The job that `owner` keeps and computes, with its blocks copied to `worker`'s memory; right
  /// if the owner's claim is open afterwards.
  AttentionJob copy_of_kept(const BoundAttention& op, const AttentionPlan& plan, int64_t index,
                            int owner, int worker) const;

  /// The first split's pages of an item, to fetch while the item before is computed.
  static NextPages pages_of(const BoundAttention& op, const AttentionJob& job, int32_t split);

  /// Fetches keys of `next` with the last split.
  void compute(const BoundAttention& op, const AttentionJob& job, const NextPages& next,
               int worker) const;
  void commit(const BoundAttention& op, const AttentionPlan& plan, const AttentionJob& job,
              int worker) const;

 private:
  /// Rows of outputs [rows][padded dim] with their maxima and sums.
  struct Partials {
    float* out;
    float* max;
    float* sum;
  };
  Partials partials_at(std::byte* memory, int64_t rows, int32_t dim) const;
  Partials partial_of(const AttentionShape& shape, int worker) const;
  Partials state_of(const AttentionShape& shape, int worker) const;
  Partials shared_partial(const AttentionShape& shape, const SharedTile& tile, int64_t rows,
                          int32_t split) const;
  void clear(const Partials& state, int64_t rows, int32_t dim) const;
  void fold(const Partials& from, const Partials& into, int64_t rows, int32_t dim) const;
  void finish(const BoundAttention& op, const AttentionItem& item, const Partials& state) const;
  /// A worker's block ids: those of its own job, which others may copy, and those copied.
  int32_t* kept_blocks(int worker) const;
  int32_t* copied_blocks(int worker) const;

  const KernelTable& kernels_;
  std::byte* shared_;
  std::byte* workers_;
  int64_t worker_bytes_;
};

}  // namespace quire::backend::cpu
