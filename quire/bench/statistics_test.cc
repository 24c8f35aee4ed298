#include "quire/bench/statistics.h"

#include <numeric>

#include <gtest/gtest.h>

namespace quire::bench {
namespace {

TEST(Statistics, PercentilesAreLinearBetweenNeighbours) {
  const std::vector<double> values = {10, 20, 30, 40};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 10);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 40);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 25);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 37);
  EXPECT_DOUBLE_EQ(percentile(std::vector<double>{7}, 99), 7);
}

TEST(Statistics, SummaryDoesNotDependOnTheOrder) {
  std::vector<double> values(101);
  std::iota(values.rbegin(), values.rend(), 0.0);
  const Summary summary = summarize(values);
  EXPECT_DOUBLE_EQ(summary.mean, 50);
  EXPECT_DOUBLE_EQ(summary.p50, 50);
  EXPECT_DOUBLE_EQ(summary.p90, 90);
  EXPECT_DOUBLE_EQ(summary.p95, 95);
  EXPECT_DOUBLE_EQ(summary.p99, 99);
  EXPECT_DOUBLE_EQ(summary.max, 100);
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
}

TEST(Statistics, NothingMeasuredIsZero) {
  EXPECT_DOUBLE_EQ(summarize({}).p99, 0);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

}  // namespace
}  // namespace quire::bench
