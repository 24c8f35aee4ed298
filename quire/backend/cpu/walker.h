// Walker: runs a loaded program, all workers of a pool walking its phases in one parallel region a
// step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/backend/cpu/attention_runner.h"
#include "quire/backend/cpu/bound_op.h"
#include "quire/backend/cpu/schedule.h"
#include "quire/backend/cpu/step_profile.h"
#include "quire/backend/cpu/work_ranges.h"
#include "quire/base/huge_buffer.h"
#include "quire/base/thread_pool.h"

namespace quire::backend::cpu {

/// Time one phase has taken over all steps so far, from barrier to barrier.
struct PhaseTime {
  Phase phase;
  int64_t nanoseconds = 0;
  int64_t steps = 0;
};

class Walker {
 public:
  /// Bytes beside the arena: rotary tables and attention's partial results.
  static int64_t scratch_bytes(const Program& program, int num_workers);

  /// Binds every operation; `arena` has program->arena_bytes, and `slabs` are the cache groups'.
  Walker(std::shared_ptr<const Program> program, const KernelTable& kernels,
         std::span<const KvSlab> slabs, std::byte* arena, ThreadPool& pool, MemoryLedger* ledger,
         bool time_phases, bool profile_steps = false);

  /// Runs one step. Allocates nothing; returns when the logits are there.
  void run(const StepMeta& meta);

  const std::vector<Phase>& phases() const { return phases_; }
  /// Empty unless time_phases.
  const std::vector<PhaseTime>& times() const { return times_; }
  void reset_times();
  /// Of the last step. Requires profile_steps.
  const StepProfile& last_step() const { return timer_->profile(); }

 private:
  struct RopeTable {
    const float* inverse_frequencies;
    float* rows;  // [max_tokens][head_dim]
    int32_t head_dim;
  };

  void bind(std::span<const KvSlab> slabs, std::byte* arena);
  void plan(const StepMeta& meta);
  void cut_units(const StepMeta& meta);

  void work(int worker);
  void work_rows(const Phase& phase, uint32_t number, int worker);
  void run_chain(const Phase& phase, int64_t begin, int64_t end, int worker);
  void work_matmuls(const Phase& phase, uint32_t number, int worker);
  void work_attention(const Phase& phase, uint32_t number, int worker);
  int64_t num_rows(Rows rows) const;

  const std::shared_ptr<const Program> program_;
  const KernelTable kernels_;
  ThreadPool& pool_;
  const std::vector<Phase> phases_;
  std::vector<BoundOp> ops_;
  std::vector<int32_t> plan_of_op_;  // attention operations: index into plans_
  std::vector<AttentionPlan> plans_;
  std::vector<RopeTable> rope_tables_;
  int32_t rope_phase_ = -1;  // fills the rotary tables before its own operations
  HugeBuffer scratch_;
  std::unique_ptr<AttentionRunner> attention_;
  WorkRanges ranges_;
  uint32_t phases_run_ = 0;

  // The step being run.
  const StepMeta* meta_ = nullptr;
  std::vector<int32_t> unit_starts_;  // [units + 1] tokens; see cut_units

  const bool time_phases_;
  std::vector<PhaseTime> times_;
  std::unique_ptr<StepTimer> timer_;  // null unless profile_steps
};

}  // namespace quire::backend::cpu
