// FakeRunner: a runner without a model, for tests of the engine and of what lies above it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "quire/base/check.h"
#include "quire/runner/runner.h"

namespace quire::engine {

/// The token at a position is a function of the sequence and the position alone, as the real one's
/// is of the sequence's tokens.
class FakeRunner final : public runner::Runner {
 public:
  struct Options {
    int32_t max_rows = 0;
    /// The token that stands at `position` (prompt included) of the sequence in `row`.
    std::function<int32_t(const sched::RowStart& row, int32_t position)> next_token;
    std::chrono::microseconds step_time{0};
    std::chrono::microseconds token_time{0};  // beside it, for each token of the step
    int64_t fail_at_step = -1;                // this step's finish() throws
  };
  explicit FakeRunner(Options options) : options_(std::move(options)) {
    rows_.resize(static_cast<size_t>(options_.max_rows));
  }

  void launch(const sched::BatchPlan& plan) override {
    QUIRE_CHECK(plan_ == nullptr);
    plan_ = &plan;
    for (const sched::RowStart& start : plan.started) rows_[static_cast<size_t>(start.row)] = start;
  }

  runner::StepOutput& finish() override {
    const sched::BatchPlan& plan = *std::exchange(plan_, nullptr);
    const auto time =
        options_.step_time + options_.token_time * static_cast<int64_t>(plan.tokens.size());
    if (time.count() > 0) std::this_thread::sleep_for(time);
    if (num_steps_++ == options_.fail_at_step) throw std::runtime_error("a step that was to fail");
    output_.tokens.clear();
    output_.logprobs.assign(plan.uses.size(), {});
    for (size_t i = 0; i < plan.uses.size(); ++i) {
      const sched::LogitsUse& use = plan.uses[i];
      const sched::RowStart& row = rows_[static_cast<size_t>(use.row)];
      const bool samples = use.kind == sched::LogitsUse::Kind::kSample;
      const int32_t token = samples ? options_.next_token(row, use.position) : use.target;
      if (samples) output_.tokens.push_back({.token = token});
      const int32_t num_top = samples ? row.sampling.logprobs : row.sampling.prompt_logprobs;
      runner::PositionLogprobs& seen = output_.logprobs[i];
      seen.chosen = {token, -0.5f, 1};
      for (int32_t top = 0; top < num_top; ++top) {
        seen.top.push_back({token + top, -0.5f - static_cast<float>(top), top + 1});
      }
    }
    return output_;
  }

 private:
  Options options_;
  const sched::BatchPlan* plan_ = nullptr;
  std::vector<sched::RowStart> rows_;
  runner::StepOutput output_;
  int64_t num_steps_ = 0;
};

}  // namespace quire::engine
