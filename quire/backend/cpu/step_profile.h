// StepProfile: where one step's time went: phases, each worker's share of them, every operation.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "quire/backend/cpu/schedule.h"

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
  std::vector<TimeSpan> work;    // [phases][workers] without the wait at the barrier
  /// [ops] Each phase's time shared out by the time that all workers spent in its operations: the
  /// sum over a phase is the phase's time, waiting included.
  std::vector<int64_t> op_ns;

  const TimeSpan& work_of(size_t phase, int worker) const {
    return work[phase * static_cast<size_t>(num_workers) + static_cast<size_t>(worker)];
  }
};

/// Fills a StepProfile while workers walk. Each worker writes to what is its own; it is put
/// together when all have come back.
class StepTimer {
 public:
  StepTimer(std::vector<Phase> phases, int64_t num_ops, int num_workers);

  void begin_step();                     // before the parallel region
  void enter(size_t phase, int worker);  // by each worker
  void leave(size_t phase, int worker);  // by each worker, before the barrier
  void end_step();                       // behind the parallel region

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

  void share_out(const Phase& phase, int64_t wall, int64_t busy);

  const std::vector<Phase> phases_;
  std::vector<std::unique_ptr<int64_t[]>> busy_;  // [workers][ops], each on pages of its own
  StepProfile profile_;
};

}  // namespace quire::backend::cpu
