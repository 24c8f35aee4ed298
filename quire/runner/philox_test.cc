#include "quire/runner/philox.h"

#include <gtest/gtest.h>

namespace quire::runner {
namespace {

using Four = std::array<uint32_t, 4>;

// The known answers published with the Random123 library (philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformUsesEveryPartOfItsKey) {
  const double base = philox_uniform(7, 0, 0);
  EXPECT_EQ(base, philox_uniform(7, 0, 0));
  EXPECT_NE(base, philox_uniform(8, 0, 0));
  EXPECT_NE(base, philox_uniform(7 + (uint64_t{1} << 32), 0, 0));
  EXPECT_NE(base, philox_uniform(7, 1, 0));
  EXPECT_NE(base, philox_uniform(7, 0, 1));
}

TEST(Philox, UniformStaysBelowOneAndIsSpread) {
  std::array<int, 16> buckets{};
  constexpr int kDraws = 16000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = philox_uniform(42, 3, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++buckets[static_cast<size_t>(u * 16)];
  }
  double chi_square = 0;
  for (const int count : buckets) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 37.7);  // 15 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace quire::runner
