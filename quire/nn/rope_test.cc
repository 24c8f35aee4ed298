#include "quire/nn/rope.h"

#include <cmath>

#include <gtest/gtest.h>

#include "quire/base/error.h"

namespace quire::nn {
namespace {

using checkpoint::RopeScaling;

TEST(Rope, PlainFrequenciesFallGeometrically) {
  const Rope rope(64, 10000.0, {});
  const auto& frequencies = rope.inverse_frequencies();
  ASSERT_EQ(frequencies.size(), 32u);
  EXPECT_EQ(frequencies[0], 1.0f);
  for (size_t i = 0; i < 32; ++i) {
    const double exact = std::pow(10000.0, -static_cast<double>(i) / 32.0);
    EXPECT_NEAR(frequencies[i], exact, 1e-6 * exact);
  }
}

TEST(Rope, LinearAndDivisorsDivide) {
  const Rope plain(8, 10000.0, {});
  RopeScaling scaling{.kind = RopeScaling::Kind::kLinear, .factor = 4.0, .divisors = {}};
  const Rope linear(8, 10000.0, scaling);
  scaling = {.kind = RopeScaling::Kind::kDivisors, .divisors = {1, 2, 4, 8}};
  const Rope divided(8, 10000.0, scaling);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(linear.inverse_frequencies()[i], plain.inverse_frequencies()[i] / 4);
    EXPECT_EQ(divided.inverse_frequencies()[i],
              plain.inverse_frequencies()[i] / scaling.divisors[i]);
  }
}

TEST(Rope, Llama3KeepsShortStretchesLongAndBlendsBetween) {
  // Llama 3.2 1B: theta 500000, factor 32, low 1, high 4, original 8192, head_dim 64.
  const Rope plain(64, 500000.0, {});
  const RopeScaling scaling{.kind = RopeScaling::Kind::kLlama3,
                            .factor = 32.0,
                            .low_freq_factor = 1.0,
                            .high_freq_factor = 4.0,
                            .original_max_position = 8192,
                            .divisors = {}};
  const Rope scaled(64, 500000.0, scaling);
  int kept = 0;
  int stretched = 0;
  int blended = 0;
  for (size_t i = 0; i < 32; ++i) {
    const double before = plain.inverse_frequencies()[i];
    const double after = scaled.inverse_frequencies()[i];
    const double wavelength = 2 * M_PI / before;
    if (wavelength < 8192.0 / 4) {
      EXPECT_EQ(after, before);
      ++kept;
    } else if (wavelength > 8192.0) {
      EXPECT_NEAR(after, before / 32, 1e-7 * before);
      ++stretched;
    } else {
      const double smooth = (8192 / wavelength - 1) / 3;
      EXPECT_NEAR(after, (1 - smooth) * before / 32 + smooth * before, 1e-6 * before);
      EXPECT_LT(after, before);
      EXPECT_GT(after, before / 32);
      ++blended;
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(stretched, 0);
  EXPECT_GT(blended, 0);
}

TEST(Rope, RefusesBadScaling) {
  RopeScaling scaling{.kind = RopeScaling::Kind::kDivisors, .divisors = {1, 2, 3}};
  EXPECT_THROW(Rope(8, 10000.0, scaling), LoadError);
  scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 0, .divisors = {}};
  EXPECT_THROW(Rope(8, 10000.0, scaling), LoadError);
}

}  // namespace
}  // namespace quire::nn
