// softmax: the passes over a row of logits that sampling needs, each in one fixed order of
// summation.
#pragma once

#include <cstdint>
#include <span>

namespace quire::runner {

/// Elements whose weights are summed before blocks are: draw_index() looks at blocks first.
inline constexpr int64_t kSumBlock = 1024;
constexpr int64_t num_sum_blocks(int64_t size) {
  return (size + kSumBlock - 1) / kSumBlock;
}

/// Index of the largest value, the lowest among equals; NaN counts as absent. 0 when all are
/// absent.
int32_t argmax(std::span<const float> logits);

/// Copies `logits` to `scores` with NaN as -inf and values above 1e30 as that. Returns the largest.
float load_scores(std::span<const float> logits, std::span<float> scores);

/// weights[i] = exp((scores[i] - largest) * factor), 0 where that is below 1e-38; `largest` is the
/// largest score. block_sums has num_sum_blocks(size) entries. Returns their sum. Relative error
/// below 3e-7.
double exp_weights(std::span<const float> scores, float largest, float factor,
                   std::span<float> weights, std::span<double> block_sums);

/// How many scores are larger than `bound`.
int64_t count_above(std::span<const float> scores, float bound);

/// The index at which the running sum of weights passes `target`, 0 <= target < their sum; never
/// one of weight 0. Block sums as exp_weights left them.
int32_t draw_index(std::span<const float> weights, std::span<const double> block_sums,
                   double target);

}  // namespace quire::runner
