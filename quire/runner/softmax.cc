#include "quire/runner/softmax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace quire::runner {
namespace {

constexpr int64_t kLanes = 16;  // loops of this constant length become vector instructions

/// exp(x) for x <= 0: 2^n times a polynomial of degree 7 in the rest, |rest| <= ln(2)/2.
inline float exp_nonpositive(float x) {
  const float clamped = x > -88.0f ? x : -88.0f;
  const auto n = static_cast<int32_t>(clamped * 1.44269504f - 0.5f);
  const auto whole = static_cast<float>(n);
  const float rest = (clamped - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float poly = 1.0f / 5040;
  poly = poly * rest + 1.0f / 720;
  poly = poly * rest + 1.0f / 120;
  poly = poly * rest + 1.0f / 24;
  poly = poly * rest + 1.0f / 6;
  poly = poly * rest + 0.5f;
  poly = poly * rest + 1.0f;
  poly = poly * rest + 1.0f;
  const float result = poly * std::bit_cast<float>((n + 127) << 23);
  return x < -87.0f ? 0.0f : result;
}

/// Sums lanes as a binary tree.
double sum_lanes(std::array<double, kLanes>& lanes) {
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

double exp_block(const float* scores, int64_t count, float largest, float factor, float* weights) {
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      weights[i + j] = exp_nonpositive((scores[i + j] - largest) * factor);
    }
    for (int64_t j = 0; j < kLanes; ++j) {
      lanes[static_cast<size_t>(j)] += static_cast<double>(weights[i + j]);
    }
  }
  for (int64_t j = 0; i + j < count; ++j) {
    weights[i + j] = exp_nonpositive((scores[i + j] - largest) * factor);
    lanes[static_cast<size_t>(j)] += static_cast<double>(weights[i + j]);
  }
  return sum_lanes(lanes);
}

float largest_of(std::span<const float> values) {
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  const auto size = static_cast<int64_t>(values.size());
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const float* block = values.data() + i;
    for (size_t j = 0; j < kLanes; ++j) lanes[j] = block[j] > lanes[j] ? block[j] : lanes[j];
  }
  for (; i < size; ++i) {
    const float value = values[static_cast<size_t>(i)];
    lanes[0] = value > lanes[0] ? value : lanes[0];
  }
  return *std::max_element(lanes.begin(), lanes.end());
}

}  // namespace

int32_t argmax(std::span<const float> logits) {
  const float largest = largest_of(logits);
  const auto found = std::find(logits.begin(), logits.end(), largest);
  return found == logits.end() ? 0 : static_cast<int32_t>(found - logits.begin());
}

float load_scores(std::span<const float> logits, std::span<float> scores) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  constexpr float kHighest = 1e30f;  // room for bias and penalties
  for (size_t i = 0; i < logits.size(); ++i) {
    const float value = logits[i] > kLowest ? logits[i] : kLowest;  // NaN too
    scores[i] = value < kHighest ? value : kHighest;
  }
  return largest_of(scores);
}

double exp_weights(std::span<const float> scores, float largest, float factor,
                   std::span<float> weights, std::span<double> block_sums) {
  const auto size = static_cast<int64_t>(scores.size());
  double total = 0;
  for (int64_t begin = 0, block = 0; begin < size; begin += kSumBlock, ++block) {
    const int64_t count = std::min(kSumBlock, size - begin);
    const double sum =
        exp_block(scores.data() + begin, count, largest, factor, weights.data() + begin);
    block_sums[static_cast<size_t>(block)] = sum;
    total += sum;
  }
  return total;
}

int32_t draw_index(std::span<const float> weights, std::span<const double> block_sums,
                   double target) {
  // Rounding may leave the target past every sum: then the last index of weight above 0 is meant.
  size_t block = 0;
  size_t last_block = 0;
  for (; block < block_sums.size(); ++block) {
    if (block_sums[block] > 0) last_block = block;
    if (target < block_sums[block]) break;
    target -= block_sums[block];
  }
  if (block == block_sums.size()) {
    block = last_block;
    target = block_sums[block];
  }
  const size_t begin = block * static_cast<size_t>(kSumBlock);
  const size_t end = std::min(begin + static_cast<size_t>(kSumBlock), weights.size());
  size_t chosen = begin;
  for (size_t i = begin; i < end; ++i) {
    if (weights[i] <= 0) continue;
    chosen = i;
    if (target < static_cast<double>(weights[i])) break;
    target -= static_cast<double>(weights[i]);
  }
  return static_cast<int32_t>(chosen);
}

}  // namespace quire::runner
