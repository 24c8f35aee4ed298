#include "quire/nn/rope.h"

#include <cmath>
#include <numbers>

#include "quire/base/error.h"

namespace quire::nn {
namespace {

using checkpoint::RopeScaling;

/// Llama 3.1's rule: wavelengths beyond original / low_freq_factor are stretched by `factor`, those
/// under original / high_freq_factor are kept, and those between are blended. All in fp32.
float llama3_frequency(float frequency, const RopeScaling& scaling) {
  const auto original = static_cast<float>(scaling.original_max_position);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto high = static_cast<float>(scaling.high_freq_factor);
  const auto factor = static_cast<float>(scaling.factor);
  const float wavelength = static_cast<float>(2.0 * std::numbers::pi) / frequency;
  if (wavelength > original / low) return frequency / factor;
  if (wavelength < original / high) return frequency;
  const float smooth = (original / wavelength - low) / (high - low);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

void check_scaling(const RopeScaling& scaling, int64_t head_dim) {
  if (scaling.kind == RopeScaling::Kind::kDivisors &&
      static_cast<int64_t>(scaling.divisors.size()) != head_dim / 2) {
    throw LoadError("rope", "rope_freqs", std::to_string(head_dim / 2) + " divisors",
                    std::to_string(scaling.divisors.size()));
  }
  const bool scaled =
      scaling.kind == RopeScaling::Kind::kLinear || scaling.kind == RopeScaling::Kind::kLlama3;
  if (scaled && !(scaling.factor > 0)) {
    throw LoadError("rope", "factor", "a positive number", std::to_string(scaling.factor));
  }
}

}  // namespace

Rope::Rope(int64_t head_dim, double theta, const RopeScaling& scaling)
    : head_dim_(head_dim), inverse_frequencies_(static_cast<size_t>(head_dim / 2)) {
  check_scaling(scaling, head_dim);
  const auto base = static_cast<float>(theta);
  for (size_t i = 0; i < inverse_frequencies_.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    float frequency = 1.0f / std::pow(base, exponent);
    switch (scaling.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        frequency /= static_cast<float>(scaling.factor);
        break;
      case RopeScaling::Kind::kLlama3:
        frequency = llama3_frequency(frequency, scaling);
        break;
      case RopeScaling::Kind::kDivisors:
        frequency /= scaling.divisors[i];
        break;
    }
    inverse_frequencies_[i] = frequency;
  }
}

backend::Tensor Rope::record(backend::ProgramBuilder& p, backend::Tensor x,
                             int64_t num_heads) const {
  return p.rope(x, inverse_frequencies_, static_cast<int32_t>(num_heads),
                static_cast<int32_t>(head_dim_));
}

}  // namespace quire::nn
