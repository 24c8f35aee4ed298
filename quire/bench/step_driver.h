// StepDriver: a real scheduler without a model: what it samples are numbers never sampled before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "quire/base/result.h"
#include "quire/sched/scheduler.h"

namespace quire::bench {

/// plan() and commit() in turns. No sequence stops before its max_tokens; since each sampled token
/// is new, no two sequences ever share output by chance.
class StepDriver {
 public:
  /// Throws LoadError on impossible options.
  explicit StepDriver(const sched::SchedulerOptions& options) : scheduler_(options) {}

  std::optional<Error> submit(sched::Request request) { return scheduler_.add(std::move(request)); }
  void cancel(sched::RequestId request) { scheduler_.cancel(request); }
  /// The next step, or null when there is nothing to run. Valid until the next call.
  const sched::BatchPlan* plan();
  /// Ends the step just planned.
  std::span<const sched::CommitEvent> commit();

  const sched::Scheduler& scheduler() const { return scheduler_; }

 private:
  /// Above the ids that callers give to prompts.
  static constexpr int32_t kFirstToken = 1 << 24;

  sched::Scheduler scheduler_;
  const sched::BatchPlan* plan_ = nullptr;
  std::vector<sched::SampledToken> sampled_;
  int32_t next_token_ = kFirstToken;
};

}  // namespace quire::bench
