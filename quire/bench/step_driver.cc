#include "quire/bench/step_driver.h"

#include "quire/base/check.h"

namespace quire::bench {

const sched::BatchPlan* StepDriver::plan() {
  plan_ = scheduler_.plan();
  return plan_;
}

std::span<const sched::CommitEvent> StepDriver::commit() {
  QUIRE_CHECK(plan_ != nullptr);
  sampled_.clear();
  for (const sched::LogitsUse& use : plan_->uses) {
    if (use.kind == sched::LogitsUse::Kind::kSample) sampled_.push_back({.token = next_token_++});
  }
  return scheduler_.commit(plan_->step, sampled_);
}

}  // namespace quire::bench
