// Random: the seeded draws of workloads, the same on every machine and standard library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace quire::bench {

/// The engine's sequence is fixed by the C++ standard; its distributions are not, so they are
/// written out here.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// In [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  /// In [low, high].
  int32_t integer(int32_t low, int32_t high) {
    const double count = static_cast<double>(high) - low + 1;
    return low + static_cast<int32_t>(uniform() * count);
  }
  /// In [low, high], each factor of the range equally likely.
  int32_t log_uniform(int32_t low, int32_t high) {
    const double ratio = std::log((high + 1.0) / low);
    return std::min(high, static_cast<int32_t>(low * std::exp(uniform() * ratio)));
  }
  /// The time between two arrivals of a Poisson process of `rate` a second.
  double exponential(double rate) { return -std::log1p(-uniform()) / rate; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace quire::bench
