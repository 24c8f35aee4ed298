#include "quire/engine/step_pace.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace quire::engine {
namespace {

using namespace std::chrono_literals;

/// A machine whose steps take a known time, to be held to 150 ms.
class StepPaceTest : public testing::Test {
 protected:
  StepPace::Duration cost(int32_t decode_rows, double work) const {
    const auto on_prompts = work * static_cast<double>(unit.count());
    return (decode_rows > 0 ? decode_step : 0ns) +
           StepPace::Duration(static_cast<int64_t>(on_prompts));
  }
  /// A step of as much work as it may have, and its time.
  StepPace::Duration step(int32_t decode_rows, int32_t prompts = 1) {
    const double work = pace.work(decode_rows, prompts);
    const auto took = cost(decode_rows, work);
    pace.observe(decode_rows, work, took);
    return took;
  }
  void decode_only(int32_t decode_rows, StepPace::Duration took) {
    for (int i = 0; i < 5; ++i) pace.observe(decode_rows, 0, took);
  }

  StepPace pace{{.target = 150ms, .max_work = 1e6, .first_unit_guess = 1ms}};
  StepPace::Duration decode_step = 20ms;
  StepPace::Duration unit = 200us;
};

TEST_F(StepPaceTest, NothingLowersTheWorkWhileNobodyDecodes) {
  EXPECT_EQ(pace.work(0, 1), 1e6);
  for (int i = 0; i < 10; ++i) pace.observe(0, 2048, 10s);
  EXPECT_EQ(pace.work(0, 1), 1e6);
}

TEST_F(StepPaceTest, BeginsWithTheGuess) {
  EXPECT_DOUBLE_EQ(pace.work(4, 1), 112.5);
  decode_only(4, decode_step);
  EXPECT_DOUBLE_EQ(pace.work(4, 1), 92.5);
}

TEST_F(StepPaceTest, FillsTheTargetAfterAFewSteps) {
  decode_only(4, decode_step);
  for (int i = 0; i < 10; ++i) EXPECT_LE(step(4), 112'500us) << i;
  EXPECT_NEAR(pace.work(4, 1), 462.5, 0.01);  // 92.5 ms of 200 us
}

TEST_F(StepPaceTest, ACrowdOfPromptsHasLongerSteps) {
  decode_only(4, decode_step);
  for (int i = 0; i < 10; ++i) step(4);
  EXPECT_NEAR(pace.work(4, StepPace::kCrowd - 1), 462.5, 0.01);
  for (int i = 0; i < 5; ++i) EXPECT_LE(step(4, StepPace::kCrowd), 225ms) << i;
  EXPECT_NEAR(pace.work(4, StepPace::kCrowd), 1025, 0.01);  // 205 ms of 200 us
}

TEST_F(StepPaceTest, ACrowdDoesNotWhereDecodingTakesMuchOfTheTarget) {
  decode_only(4, 40ms);
  for (int i = 0; i < 10; ++i) pace.observe(4, 100, 40ms + 100 * unit);
  EXPECT_EQ(pace.work(4, 100), pace.work(4, 1));
}

TEST_F(StepPaceTest, KeepsToItWhileWorkGrowsDearer) {
  decode_only(4, decode_step);
  for (int i = 0; i < 40; ++i) {
    EXPECT_LE(step(4), 150ms) << i;
    unit += unit / 20;
  }
}

TEST_F(StepPaceTest, OneSlowStepOfEitherKindChangesLittle) {
  decode_only(4, decode_step);
  for (int i = 0; i < 10; ++i) step(4);
  const double before = pace.work(4, 1);
  pace.observe(4, before, 30s);
  EXPECT_NEAR(pace.work(4, 1), before, 0.01);
  pace.observe(4, 0, 30s);
  EXPECT_NEAR(pace.work(4, 1), before, 0.01);
  // Several are no accident.
  pace.observe(4, before, 1s);
  EXPECT_LT(pace.work(4, 1), before / 4);
}

TEST_F(StepPaceTest, PromptsAlwaysGetOn) {
  decode_only(100, 3s);
  for (int i = 0; i < 5; ++i) pace.observe(100, 2048, 300s);
  EXPECT_EQ(pace.work(100, 1), StepPace::kMinWork);
}

TEST_F(StepPaceTest, SmallStepsAreNotTrustedForLargeOnes) {
  decode_only(4, decode_step);
  for (int i = 0; i < 5; ++i) pace.observe(4, 40, decode_step + 1us);  // next to nothing a unit
  EXPECT_LE(pace.work(4, 1), 80);
  for (int i = 0; i < 5; ++i) pace.observe(4, 3, 10s);  // too little to tell
  EXPECT_LE(pace.work(4, 1), 80);
}

TEST_F(StepPaceTest, RecoversWhenTheMachineDoes) {
  decode_only(4, decode_step);
  unit = 5ms;
  for (int i = 0; i < 10; ++i) step(4);
  EXPECT_LE(pace.work(4, 1), 40);
  unit = 200us;
  for (int i = 0; i < 15; ++i) step(4);
  EXPECT_NEAR(pace.work(4, 1), 462.5, 0.01);
}

}  // namespace
}  // namespace quire::engine
