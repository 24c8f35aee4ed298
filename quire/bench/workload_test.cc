#include "quire/bench/workload.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "quire/bench/random.h"

namespace quire::bench {
namespace {

const std::vector<LengthPair> kLengths = {{3, 5}, {10, 1}, {7, 2}};

TEST(Random, IsTheSameEverywhere) {
  Random random(42);
  EXPECT_DOUBLE_EQ(random.uniform(), static_cast<double>(13930160852258120406u >> 11) * 0x1.0p-53);
}

TEST(Random, LogUniformStaysInRangeAndFavoursNoFactor) {
  Random random(1);
  int below_32 = 0;
  for (int i = 0; i < 20000; ++i) {
    const int32_t value = random.log_uniform(4, 256);
    ASSERT_GE(value, 4);
    ASSERT_LE(value, 256);
    below_32 += value < 32 ? 1 : 0;
  }
  // 4..32 and 32..257 are factors of 8 and 8.03.
  EXPECT_NEAR(below_32 / 20000.0, std::log(8.0) / std::log(257 / 4.0), 0.02);
}

TEST(Workload, ArrivalsArePoisson) {
  const auto requests =
      make_workload(kLengths, {.num_prompts = 20000, .request_rate = 8, .seed = 3});
  // Gaps of a Poisson process: mean 1/8, standard deviation the same.
  double sum = 0;
  double squares = 0;
  for (size_t i = 1; i < requests.size(); ++i) {
    const double gap = requests[i].arrival_s - requests[i - 1].arrival_s;
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double count = static_cast<double>(requests.size()) - 1;
  const double mean = sum / count;
  EXPECT_NEAR(mean * 8, 1, 0.03);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean) * 8, 1, 0.03);
}

TEST(Workload, ArriveAtOnceWithoutARate) {
  for (const auto& request : make_workload(kLengths, {.num_prompts = 5})) {
    EXPECT_EQ(request.arrival_s, 0);
  }
}

TEST(Workload, LengthsAreExactAndAllTaken) {
  const auto requests = make_workload(kLengths, {.num_prompts = 6, .prefix_len = 4});
  std::multiset<std::pair<int32_t, int32_t>> found;
  for (const auto& request : requests) {
    found.insert({static_cast<int32_t>(request.prompt.size()) - 4, request.output_len});
  }
  std::multiset<std::pair<int32_t, int32_t>> expected;
  for (const auto& pair : kLengths) {
    expected.insert({pair.input_len, pair.output_len});
    expected.insert({pair.input_len, pair.output_len});
  }
  EXPECT_EQ(found, expected);
}

TEST(Workload, GroupsShareTheirPrefixAndNothingElse) {
  const auto requests =
      make_workload(kLengths, {.num_prompts = 8, .prefix_len = 20, .prefix_groups = 2});
  const auto prefix = [&](size_t i) {
    return std::vector<int32_t>(requests[i].prompt.begin(), requests[i].prompt.begin() + 20);
  };
  for (size_t i = 2; i < 8; ++i) EXPECT_EQ(prefix(i), prefix(i - 2));
  EXPECT_NE(prefix(0), prefix(1));
  EXPECT_NE(requests[0].prompt[20], requests[2].prompt[20]);
}

TEST(Workload, SeedsRepeatAndDiffer) {
  const auto prompts = [](uint64_t seed) {
    std::vector<std::vector<int32_t>> out;
    for (auto& request : make_workload(kLengths, {.num_prompts = 4, .seed = seed})) {
      out.push_back(request.prompt);
    }
    return out;
  };
  EXPECT_EQ(prompts(7), prompts(7));
  EXPECT_NE(prompts(7), prompts(8));
}

TEST(Workload, RangeBoundsDrawnLengths) {
  int32_t low = 1000;
  int32_t high = 0;
  for (const LengthPair& pair : draw_lengths({100, 10}, 0.5, 2000, 1)) {
    low = std::min(low, pair.input_len);
    high = std::max(high, pair.input_len);
  }
  EXPECT_EQ(low, 50);
  EXPECT_EQ(high, 150);
  EXPECT_EQ(draw_lengths({100, 10}, 0, 1, 1).front(), (LengthPair{100, 10}));
}

}  // namespace
}  // namespace quire::bench
