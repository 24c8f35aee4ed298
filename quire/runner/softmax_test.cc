#include "quire/runner/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace quire::runner {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Weights {
  std::vector<float> weights;
  std::vector<double> block_sums;
  double total = 0;
};

Weights weights_of(const std::vector<float>& scores, float largest, float factor) {
  Weights made;
  made.weights.resize(scores.size());
  made.block_sums.resize(static_cast<size_t>(num_sum_blocks(static_cast<int64_t>(scores.size()))));
  made.total = exp_weights(scores, largest, factor, made.weights, made.block_sums);
  return made;
}

TEST(Softmax, WeightsAreExponentials) {
  std::vector<float> scores;
  for (int i = 0; i <= 8600; ++i) scores.push_back(-0.01f * static_cast<float>(i));
  const Weights made = weights_of(scores, 0.0f, 1.0f);
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double exact = std::exp(double{scores[i]});
    EXPECT_LT(std::abs(made.weights[i] - exact) / exact, 3e-7) << scores[i];
    sum += exact;
  }
  EXPECT_NEAR(made.total / sum, 1.0, 1e-7);
  const Weights edge = weights_of({0.0f, -87.1f, -1e30f, -kInf}, 0.0f, 1.0f);
  EXPECT_EQ(edge.weights, (std::vector<float>{1.0f, 0.0f, 0.0f, 0.0f}));
}

TEST(Softmax, SumsDoNotDependOnWhatLiesBehind) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> scores(3001);
  for (float& score : scores) score = normal(generator);
  const Weights whole = weights_of(scores, 12.0f, 0.7f);
  for (const size_t size : {size_t{1}, size_t{15}, size_t{16}, size_t{1025}, size_t{3000}}) {
    const std::vector<float> part(scores.begin(), scores.begin() + static_cast<int64_t>(size));
    const Weights made = weights_of(part, 12.0f, 0.7f);
    EXPECT_TRUE(std::equal(made.weights.begin(), made.weights.end(), whole.weights.begin()));
  }
}

TEST(Softmax, LargestAtEveryPlace) {
  for (size_t size = 1; size < 40; ++size) {
    for (size_t at = 0; at < size; ++at) {
      std::vector<float> logits(size, kNan);
      logits[at] = -3.0f;
      EXPECT_EQ(argmax(logits), static_cast<int32_t>(at));
      std::vector<float> scores(size);
      EXPECT_EQ(load_scores(logits, scores), -3.0f);
      EXPECT_EQ(count_above(scores, -4.0f), 1);
      EXPECT_EQ(scores[(at + 1) % size], size == 1 ? -3.0f : -kInf);
    }
  }
}

TEST(Softmax, DrawsEveryIndexByItsShare) {
  std::vector<float> scores(2500, -kInf);
  scores[3] = scores[1030] = scores[2499] = 0.0f;
  const Weights made = weights_of(scores, 0.0f, 1.0f);
  EXPECT_EQ(made.total, 3.0);
  EXPECT_EQ(draw_index(made.weights, made.block_sums, 0.0), 3);
  EXPECT_EQ(draw_index(made.weights, made.block_sums, 0.999), 3);
  EXPECT_EQ(draw_index(made.weights, made.block_sums, 1.0), 1030);
  EXPECT_EQ(draw_index(made.weights, made.block_sums, 2.5), 2499);
  EXPECT_EQ(draw_index(made.weights, made.block_sums, 3.0), 2499);  // rounding may lead there
}

}  // namespace
}  // namespace quire::runner
