// StepProfile: where one step's time went: phases, each worker's share of them, every operation.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "quire/backend/cpu/schedule.h"
#include "quire/backend/program.h"

namespace quire::backend::cpu {

/// Nanoseconds of the steady clock.
inline int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct TimeSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  int64_t duration() const { return end_ns - begin_ns; }
};

struct StepProfile {
  int num_workers = 0;
  TimeSpan step;                 // the whole walk
  std::vector<TimeSpan> phases;  // [phases] one after the other; empty spans had no rows
  /// [phases][workers] From the first items a worker took to the last it finished; empty where it
  /// finished none.
  std::vector<TimeSpan> work;
  /// [ops] Each phase's time shared out among its operations: matmuls by their weights' bytes, rows
  /// by the time that all workers spent in each. The sum over a phase is the phase's time.
  std::vector<int64_t> op_ns;

  const TimeSpan& work_of(size_t phase, int worker) const {
    return work[phase * static_cast<size_t>(num_workers) + static_cast<size_t>(worker)];
  }
};

/// Fills a StepProfile while workers walk. A worker writes to what is its own, and only while the
/// phase waits for items that it has taken; it is put together when the step has ended.
class StepTimer {
 public:
  StepTimer(const Program& program, std::vector<Phase> phases, int num_workers);

  void begin_step();  // before the first phase is under way
  /// Items of `phase` that `worker` was at in `span`.
  void note(size_t phase, int worker, const TimeSpan& span);
  void end_step();  // behind the last phase

  const StepProfile& profile() const { return profile_; }

  /// Times one operation on one worker while it lives. `timer` may be null.
  class Scope {
   public:
    Scope(StepTimer* timer, int worker, int32_t op)
        : timer_(timer), worker_(worker), op_(op), begin_(timer == nullptr ? 0 : steady_ns()) {}
    ~Scope() {
      if (timer_ != nullptr) timer_->add(worker_, op_, steady_ns() - begin_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepTimer* timer_;
    int worker_;
    int32_t op_;
    int64_t begin_;
  };

 private:
  void add(int worker, int32_t op, int64_t ns) {
    busy_[static_cast<size_t>(worker)][static_cast<size_t>(op)] += ns;
  }
  void share_out(const Phase& phase, int64_t wall);

  const std::vector<Phase> phases_;
  std::vector<int64_t> weight_bytes_;             // [ops] of matmuls, else 0
  std::vector<std::unique_ptr<int64_t[]>> busy_;  // [workers][ops] ns; not side by side
  StepProfile profile_;
};

}  // namespace quire::backend::cpu
