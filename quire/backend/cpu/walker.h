// Walker: runs a loaded program, all workers of a pool walking its phases in one parallel region a
// step.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/backend/cpu/attention_runner.h"
#include "quire/backend/cpu/bound_op.h"
#include "quire/backend/cpu/claim_board.h"
#include "quire/backend/cpu/matmul_items.h"
#include "quire/backend/cpu/schedule.h"
#include "quire/backend/cpu/step_profile.h"
#include "quire/backend/cpu/work_ranges.h"
#include "quire/base/huge_buffer.h"
#include "quire/base/sanitizer.h"
#include "quire/base/thread_pool.h"
#include "quire/base/turn_counter.h"

namespace quire::backend::cpu {

/// Time one phase has taken over all steps so far, from its beginning to the next one's.
struct PhaseTime {
  Phase phase;
  int64_t nanoseconds = 0;
  int64_t steps = 0;
};

/// What a worker's last claim of a phase took, to judge others by.
struct alignas(64) Pace {
  uint64_t turn = 0;
  int64_t began_ns = 0;
  int64_t items = 0;
  double ns_an_item = 0;
};

/// A step is a number of phases, and ends when all items of all phases are done, by whomever. No
/// worker waits for another to arrive: what a worker that has lost its processor has not begun is
/// taken by others, and what it is in the middle of is computed again (ClaimBoard; all but row
/// chains and matmuls of many rows, which are waited for). A worker that comes late, even steps
/// later, finds the phase under way by its number.
class Walker {
 public:
  /// Not for the thread sanitizer: a worker that was rescued may go on reading what others write by
  /// then, and its result is dropped. Without rescues phases have no such reader.
  static constexpr bool kRescues = !kThreadSanitizer;

  struct Options {
    bool time_phases = false;
    bool profile_steps = false;  // see last_step()
    /// Called by each worker when it has opened a claim, and after it tried to commit it; tests let
    /// workers sleep in it.
    std::function<void(int worker, bool opened)> on_claim = {};
  };

  /// Bytes beside the arena: rotary tables, attention's partial results, the workers' results of
  /// matmuls.
  static int64_t scratch_bytes(const Program& program, int num_workers);

  /// Binds every operation; `arena` has program->arena_bytes, and `slabs` are the cache groups'.
  Walker(std::shared_ptr<const Program> program, const KernelTable& kernels,
         std::span<const KvSlab> slabs, std::byte* arena, ThreadPool& pool, MemoryLedger* ledger,
         Options options);
  /// Waits for workers that are still inside an old step.
  ~Walker();
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  /// Runs one step. Allocates nothing; returns when the logits are there. Late workers may go on
  /// reading the arena, the KV slabs and the weights.
  void run(const StepMeta& meta);

  const std::vector<Phase>& phases() const { return phases_; }
  /// Empty unless time_phases.
  const std::vector<PhaseTime>& times() const { return times_; }
  void reset_times();
  /// Requires Options::profile_steps.
  const StepProfile& last_step() const { return timer_->profile(); }
  /// Claims that another worker than their owner committed, so far.
  int64_t num_rescues() const { return rescues_.load(std::memory_order_relaxed); }

 private:
  struct RopeTable {
    const float* inverse_frequencies;
    float* rows;  // [max_tokens][head_dim]
    int32_t head_dim;
  };
  /// One worker in one phase of one step.
  struct Visit {
    const Phase& phase;
    uint64_t turn;
    int worker;
  };
  /// What the pool calls.
  struct Crew {
    Walker* walker;
    void operator()(int worker) const { walker->work(worker); }
  };
  enum class Rescue { kNothing, kTooEarly, kDone };

  void bind(std::span<const KvSlab> slabs, std::byte* arena);
  void cut_units(const StepMeta& meta);

  void work(int worker);
  void work_rows(const Visit& visit);
  void run_chain(const Visit& visit, int64_t begin, int64_t end);
  void work_matmuls(const Visit& visit);
  void work_attention(const Visit& visit);
  void open_claim(const Visit& visit, const ItemRange& items);
  bool commit_claim(const Visit& visit);

  int64_t began() const { return timer_ == nullptr ? 0 : steady_ns(); }
  /// Notes items that this worker has been at since `began`; before they count as done.
  void note(const Visit& visit, int64_t began);
  /// Counts items of the visit's phase as done; the last of `all` ends it.
  void finish(const Visit& visit, int64_t count, int64_t all);
  void advance(uint64_t turn);
  void await(const Visit& visit);
  Rescue rescue(const Visit& visit, int64_t now_ns);
  bool rescue_matmuls(const Visit& visit, int owner, const ClaimBoard::Sight& sight);
  bool rescue_attention(const Visit& visit, int owner, const ClaimBoard::Sight& sight);

  int64_t num_rows(Rows rows) const {
    return rows_[static_cast<size_t>(rows)].load(std::memory_order_relaxed);
  }
  MatmulItems matmuls_of(const Phase& phase) const;
  const AttentionPlan& plan_of(const Phase& phase) const;
  /// Of one phase of one step, of this walker or any other.
  uint64_t key_of(const Visit& visit) const;
  float* matmul_scratch(int worker) const;

  const std::shared_ptr<const Program> program_;
  const KernelTable kernels_;
  ThreadPool& pool_;
  const Options options_;
  const uint64_t number_;  // of the walker, from 1
  const std::vector<Phase> phases_;
  std::vector<BoundOp> ops_;
  std::vector<int32_t> plan_of_op_;  // attention operations: index into plans_
  std::vector<AttentionPlan> plans_;
  std::vector<RopeTable> rope_tables_;
  int32_t rope_phase_ = -1;  // fills the rotary tables before its own operations
  HugeBuffer scratch_;
  float* matmul_scratch_ = nullptr;  // [workers][MatmulItems::kScratchFloats]
  std::unique_ptr<AttentionRunner> attention_;
  Crew crew_{this};

  // Turns count phases for ever: with n phases, turn % (n + 1) is the phase under way, n = no step.
  TurnCounter turn_;
  alignas(128) std::atomic<int64_t> done_{0};  // items of the phase under way
  WorkRanges ranges_;
  ClaimBoard claims_;
  std::vector<Pace> paces_;  // per worker
  std::atomic<int64_t> rescues_{0};

  // The step being run. Late workers look at the atomic ones before they know that they are late.
  const StepMeta* meta_ = nullptr;
  std::atomic<int64_t> rows_[2];  // by Rows
  std::atomic<int64_t> num_units_{0};
  std::vector<int32_t> unit_starts_;  // [units + 1] tokens; see cut_units

  int64_t phase_began_ns_ = 0;
  std::vector<PhaseTime> times_;
  std::unique_ptr<StepTimer> timer_;  // null unless profile_steps
};

}  // namespace quire::backend::cpu
