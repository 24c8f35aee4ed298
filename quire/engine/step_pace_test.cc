#include "quire/engine/step_pace.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace quire::engine {
namespace {

using namespace std::chrono_literals;

/// A machine whose steps take a known time, to be held to 100 ms of 150.
class StepPaceTest : public testing::Test {
 protected:
  StepPace::Duration cost(int32_t decode_rows, int32_t prompt_tokens) const {
    return (decode_rows > 0 ? decode_step : 0ns) + prompt_tokens * prompt_token;
  }
  /// A step of as many prompt tokens as the budget leaves, and its time.
  StepPace::Duration step(int32_t decode_rows) {
    const auto took = cost(decode_rows, pace.budget(decode_rows) - decode_rows);
    pace.observe(decode_rows, pace.budget(decode_rows) - decode_rows, took);
    return took;
  }

  StepPace pace{{.target = 150ms, .max_tokens = 2048, .first_token_guess = 1ms}};
  StepPace::Duration decode_step = 20ms;
  StepPace::Duration prompt_token = 200us;
};

TEST_F(StepPaceTest, NothingLowersTheBudgetWhileNobodyDecodes) {
  EXPECT_EQ(pace.budget(0), 2048);
  for (int i = 0; i < 10; ++i) pace.observe(0, 2048, 10s);
  EXPECT_EQ(pace.budget(0), 2048);
}

TEST_F(StepPaceTest, BeginsWithTheGuess) {
  EXPECT_EQ(pace.budget(4), 4 + 90);
  for (int i = 0; i < 5; ++i) pace.observe(4, 0, decode_step);
  EXPECT_EQ(pace.budget(4), 4 + 70);
}

TEST_F(StepPaceTest, FillsTheTargetAfterAFewSteps) {
  for (int i = 0; i < 5; ++i) pace.observe(4, 0, decode_step);
  for (int i = 0; i < 10; ++i) EXPECT_LE(step(4), 90ms) << i;
  EXPECT_EQ(pace.budget(4), 4 + 350);  // 70 ms of 200 us
}

TEST_F(StepPaceTest, KeepsToItWhileTokensGrowDearer) {
  for (int i = 0; i < 5; ++i) pace.observe(4, 0, decode_step);
  for (int i = 0; i < 40; ++i) {
    EXPECT_LE(step(4), 150ms) << i;
    prompt_token += prompt_token / 20;
  }
}

TEST_F(StepPaceTest, OneSlowStepOfEitherKindChangesLittle) {
  for (int i = 0; i < 5; ++i) pace.observe(4, 0, decode_step);
  for (int i = 0; i < 10; ++i) step(4);
  const int32_t before = pace.budget(4);
  pace.observe(4, before - 4, 30s);
  EXPECT_EQ(pace.budget(4), before);
  pace.observe(4, 0, 30s);
  EXPECT_EQ(pace.budget(4), before);
  // Several are no accident.
  pace.observe(4, before - 4, 1s);
  EXPECT_LT(pace.budget(4), before / 4);
}

TEST_F(StepPaceTest, PromptsAlwaysGetOn) {
  for (int i = 0; i < 5; ++i) pace.observe(100, 0, 3s);
  for (int i = 0; i < 5; ++i) pace.observe(100, 2048, 300s);
  EXPECT_EQ(pace.budget(100), 100 + StepPace::kMinPromptTokens);
  EXPECT_EQ(pace.budget(2048), 2048);
}

TEST_F(StepPaceTest, SmallStepsAreNotTrustedForLargeOnes) {
  for (int i = 0; i < 5; ++i) pace.observe(4, 0, decode_step);
  for (int i = 0; i < 5; ++i) pace.observe(4, 40, decode_step + 1us);  // next to nothing a token
  EXPECT_LE(pace.budget(4), 4 + 80);
  for (int i = 0; i < 5; ++i) pace.observe(4, 3, 10s);  // too small to tell
  EXPECT_LE(pace.budget(4), 4 + 80);
}

TEST_F(StepPaceTest, RecoversWhenTheMachineDoes) {
  for (int i = 0; i < 5; ++i) pace.observe(4, 0, decode_step);
  prompt_token = 5ms;
  for (int i = 0; i < 10; ++i) step(4);
  EXPECT_LE(pace.budget(4), 4 + 40);
  prompt_token = 200us;
  for (int i = 0; i < 15; ++i) step(4);
  EXPECT_EQ(pace.budget(4), 4 + 350);
}

}  // namespace
}  // namespace quire::engine
