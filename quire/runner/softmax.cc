#include "quire/runner/softmax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace quire::runner {
namespace {

// Four lanes: one register of the weakest processor. Sixteen running sums, four registers of four.
using F4 = float __attribute__((vector_size(16)));
using I4 = int32_t __attribute__((vector_size(16)));
using D4 = double __attribute__((vector_size(32)));
constexpr int64_t kWidth = 4;
constexpr size_t kGroups = 4;
constexpr int64_t kStride = kWidth * static_cast<int64_t>(kGroups);
constexpr float kLowest = -std::numeric_limits<float>::infinity();

inline F4 load(const float* from) {
  F4 lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

inline void store(float* to, F4 lanes) {
  std::memcpy(to, &lanes, sizeof(lanes));
}

inline F4 all(float value) {
  return F4{value, value, value, value};
}

/// Lane by lane: a where `mask` is set, else b.
inline F4 select(I4 mask, F4 a, F4 b) {
  return std::bit_cast<F4>((mask & std::bit_cast<I4>(a)) | (~mask & std::bit_cast<I4>(b)));
}

inline F4 larger(F4 a, F4 b) {
  return select(a > b, a, b);
}

/// exp(x) for x <= 0: 2^n times a polynomial of degree 7 in the rest, |rest| <= ln(2)/2.
inline F4 exp_nonpositive(F4 x) {
  const F4 clamped = larger(x, all(-88.0f));
  const I4 n = __builtin_convertvector(clamped * 1.44269504f - 0.5f, I4);
  const F4 whole = __builtin_convertvector(n, F4);
  // ln(2) in two parts: the first times n is exact.
  const F4 rest = (clamped - whole * 0.693359375f) + whole * 2.12194440e-4f;
  F4 poly = all(1.0f / 5040);
  poly = poly * rest + 1.0f / 720;
  poly = poly * rest + 1.0f / 120;
  poly = poly * rest + 1.0f / 24;
  poly = poly * rest + 1.0f / 6;
  poly = poly * rest + 0.5f;
  poly = poly * rest + 1.0f;
  poly = poly * rest + 1.0f;
  const F4 result = poly * std::bit_cast<F4>((n + 127) << 23);
  return select(x < all(-87.0f), all(0.0f), result);
}

/// Weights of `count` scores and their sum. Lanes past the end hold scores of weight 0.
double exp_block(const float* scores, int64_t count, float largest, float factor, float* weights) {
  std::array<D4, kGroups> sums{};
  for (int64_t i = 0; i < count; i += kStride) {
    std::array<float, kStride> padded;
    const bool whole = count - i >= kStride;
    const float* from = scores + i;
    float* to = weights + i;
    if (!whole) {
      padded.fill(kLowest);
      std::copy(from, from + (count - i), padded.begin());
      from = to = padded.data();
    }
    for (size_t group = 0; group < kGroups; ++group) {
      const F4 weight = exp_nonpositive((load(from + group * kWidth) - largest) * factor);
      store(to + group * kWidth, weight);
      sums[group] += __builtin_convertvector(weight, D4);
    }
    if (!whole) std::copy(padded.begin(), padded.begin() + (count - i), weights + i);
  }
  const D4 sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

float largest_of(std::span<const float> values) {
  const auto size = static_cast<int64_t>(values.size());
  std::array<F4, kGroups> lanes;
  lanes.fill(all(kLowest));
  int64_t i = 0;
  for (; i + kStride <= size; i += kStride) {
    for (size_t group = 0; group < kGroups; ++group) {
      lanes[group] = larger(load(values.data() + i + group * kWidth), lanes[group]);
    }
  }
  const F4 last = larger(larger(lanes[0], lanes[1]), larger(lanes[2], lanes[3]));
  float largest = std::max(std::max(last[0], last[1]), std::max(last[2], last[3]));
  for (; i < size; ++i) {
    const float value = values[static_cast<size_t>(i)];
    largest = value > largest ? value : largest;
  }
  return largest;
}

}  // namespace

int32_t argmax(std::span<const float> logits) {
  const float largest = largest_of(logits);
  const auto found = std::find(logits.begin(), logits.end(), largest);
  return found == logits.end() ? 0 : static_cast<int32_t>(found - logits.begin());
}

float load_scores(std::span<const float> logits, std::span<float> scores) {
  constexpr float kHighest = 1e30f;  // room for bias and penalties
  const auto size = static_cast<int64_t>(logits.size());
  F4 largest = all(kLowest);
  int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    F4 value = larger(load(logits.data() + i), all(kLowest));  // NaN is not larger
    value = select(value < all(kHighest), value, all(kHighest));
    store(scores.data() + i, value);
    largest = larger(value, largest);
  }
  float last = std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3]));
  for (; i < size; ++i) {
    const float value = logits[static_cast<size_t>(i)];
    float& score = scores[static_cast<size_t>(i)];
    score = value > kLowest ? std::min(value, kHighest) : kLowest;
    last = std::max(last, score);
  }
  return last;
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

int64_t count_above(std::span<const float> scores, float bound) {
  const auto size = static_cast<int64_t>(scores.size());
  I4 counts = {0, 0, 0, 0};
  int64_t i = 0;
  // A comparison that holds is -1 in its lane.
  for (; i + kWidth <= size; i += kWidth) counts -= load(scores.data() + i) > all(bound);
  int64_t count = int64_t{counts[0]} + counts[1] + counts[2] + counts[3];
  for (; i < size; ++i) count += scores[static_cast<size_t>(i)] > bound ? 1 : 0;
  return count;
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
