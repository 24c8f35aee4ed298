#include "quire/bench/batching.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace quire::bench {
namespace {

TEST(Batching, OutputLengthsRepeatAndSpanTheRange) {
  const BatchingOptions options{.num_requests = 2000};
  const auto lengths = draw_output_lengths(options);
  EXPECT_EQ(lengths, draw_output_lengths(options));
  EXPECT_EQ(*std::min_element(lengths.begin(), lengths.end()), 4);
  EXPECT_GE(*std::max_element(lengths.begin(), lengths.end()), 250);
}

TEST(Batching, RatioIsTheMedianOverRounds) {
  BatchingResult result;
  result.static_tokens_per_s = {10, 10, 5};
  result.continuous_tokens_per_s = {20, 30, 50};
  EXPECT_DOUBLE_EQ(result.ratio(), 3);
}

}  // namespace
}  // namespace quire::bench
