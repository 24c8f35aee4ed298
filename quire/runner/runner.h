// Runner: runs one planned step at a time and tells what was sampled.
#pragma once

#include <span>
#include <vector>

#include "quire/runner/logprobs.h"
#include "quire/sched/batch_plan.h"

namespace quire::runner {

/// A step's results. Valid until the next launch.
struct StepOutput {
  /// One per LogitsUse of kind kSample, in their order; `stop` is left false.
  std::vector<sched::SampledToken> tokens;
  /// One per LogitsUse of the plan, in their order; empty entries (token -1) where the row asked
  /// for none. The vector is empty when no row of the step asked for any.
  std::vector<PositionLogprobs> logprobs;
};

class Runner {
 public:
  virtual ~Runner() = default;
  /// Starts a step; `plan` must stay valid until finish() returned.
  virtual void launch(const sched::BatchPlan& plan) = 0;
  /// Waits for the launched step and samples.
  /// The caller may move log-probabilities out of the result.
  virtual StepOutput& finish() = 0;
};

}  // namespace quire::runner
