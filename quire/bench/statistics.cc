#include "quire/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "quire/base/check.h"

namespace quire::bench {

double percentile(std::span<const double> sorted, double percent) {
  QUIRE_CHECK(!sorted.empty() && percent >= 0 && percent <= 100);
  const double rank = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = rank - std::floor(rank);
  return sorted[below] + (sorted[above] - sorted[below]) * share;
}

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = percentile(values, 50),
          .p90 = percentile(values, 90),
          .p95 = percentile(values, 95),
          .p99 = percentile(values, 99),
          .max = values.back()};
}

double median(std::vector<double> values) {
  return summarize(std::move(values)).p50;
}

}  // namespace quire::bench
