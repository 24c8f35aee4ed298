#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "quire/engine/engine_test_kit.h"

namespace quire::engine {
namespace {

using namespace std::chrono_literals;

/// An engine whose prompt tokens take 100 us each, and the largest step that it ran.
struct PacedKit {
  explicit PacedKit(Clock::duration target) {
    EngineKit::Options options;
    options.token_time = 100us;
    options.engine.target_itl = target;
    options.engine.scheduler.max_model_len = 4096;
    options.engine.scheduler.num_blocks = 1024;
    options.engine.on_step = [this](const StepStats& step) {
      largest_step = std::max(largest_step.load(), step.num_tokens);
    };
    kit = std::make_unique<EngineKit>(options);
  }
  /// Runs a prompt of 1,500 tokens, next to a stream if `beside_a_stream`.
  Collected run_long_prompt(bool beside_a_stream) {
    const std::vector<int32_t> prompt(1500, 3);
    if (!beside_a_stream) return kit->run(kit->request(prompt, 4));
    OutputStream stream = kit->submit(kit->request({1, 2}, 2000));
    std::vector<OutputEvent> events;
    EXPECT_TRUE(stream.wait(events));
    largest_step = 0;
    return kit->run(kit->request(prompt, 4));  // and then hangs up
  }

  std::atomic<int64_t> largest_step{0};
  std::unique_ptr<EngineKit> kit;  // dies first: its thread counts steps
};

TEST(EnginePace, StepsAreShortWhileSomebodyWaitsForTokens) {
  PacedKit paced(30ms);
  const Collected alone = paced.run_long_prompt(false);
  EXPECT_EQ(paced.largest_step, 1500);
  const Collected beside = paced.run_long_prompt(true);
  // 22.5 ms of the 30, at 100 us a token or more.
  EXPECT_LE(paced.largest_step, 226);
  EXPECT_GE(paced.largest_step, 33);
  EXPECT_EQ(alone.choices[0].tokens, beside.choices[0].tokens);
}

TEST(EnginePace, WithoutATargetTheBudgetStays) {
  PacedKit free_running(0ms);
  free_running.run_long_prompt(true);
  EXPECT_EQ(free_running.largest_step, 1501);
  EXPECT_EQ(free_running.kit->engine->stats().token_budget, 2048);
}

}  // namespace
}  // namespace quire::engine
