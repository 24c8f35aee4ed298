// Summary: what is told of many measurements: the mean and the percentiles.
#pragma once

#include <span>
#include <vector>

namespace quire::bench {

/// The value that a share of `percent` / 100 of `sorted` (ascending, not empty) lies below, linear
/// between neighbours: rank = percent / 100 * (n - 1), as numpy's default.
double percentile(std::span<const double> sorted, double percent);

struct Summary {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

/// All zeros of no values.
Summary summarize(std::vector<double> values);

/// 0 of no values.
double median(std::vector<double> values);

}  // namespace quire::bench
