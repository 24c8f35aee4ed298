#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "quire/backend/cpu/levels.h"
#include "quire/backend/cpu/matmul_cases.h"

namespace quire::backend::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// One row prepared as int8 by groups.
struct Int8Row {
  Int8Row(const KernelTable& table, const std::vector<float>& in, int64_t group) {
    Activations a(1, static_cast<int64_t>(in.size()), 1);
    a.plain = in;
    a.hold(table, ActType::kI8, group);
    bytes = a.held;
    const auto groups = static_cast<size_t>(a.cols / group);
    codes.resize(in.size());
    scales.resize(groups);
    sums.resize(groups);
    std::memcpy(codes.data(), bytes.data(), codes.size());
    std::memcpy(scales.data(), bytes.data() + prepared_scales_offset(a.cols), groups * 4);
    std::memcpy(sums.data(), bytes.data() + prepared_sums_offset(a.cols, group), groups * 4);
  }
  std::vector<unsigned char> bytes;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

std::vector<float> random_row(size_t n, float scale) {
  std::vector<float> row(n);
  for (size_t i = 0; i < n; ++i) row[i] = random_float(31, i) * scale;
  return row;
}

TEST(Prepare, Int8CodesAreTheNearestAndSumsTheirSums) {
  for (const Level level : available_levels()) {
    for (const int64_t group : {8, 24, 32, 64, 128}) {
      const auto row = random_row(static_cast<size_t>(group * 3), 3.0f);
      const Int8Row held(kernel_table(level), row, group);
      for (size_t g = 0; g < 3; ++g) {
        float maximum = 0;
        int32_t sum = 0;
        for (size_t i = 0; i < static_cast<size_t>(group); ++i) {
          maximum = std::max(maximum, std::abs(row[g * static_cast<size_t>(group) + i]));
        }
        EXPECT_EQ(held.scales[g], maximum / 127.0f);
        for (size_t i = 0; i < static_cast<size_t>(group); ++i) {
          const size_t at = g * static_cast<size_t>(group) + i;
          EXPECT_EQ(held.codes[at], std::nearbyint(row[at] * (127.0f / maximum)));
          EXPECT_NEAR(held.scales[g] * static_cast<float>(held.codes[at]), row[at],
                      held.scales[g] * 0.5001f);
          sum += held.codes[at];
        }
        EXPECT_EQ(held.sums[g], sum) << level_name(level) << " group " << group;
      }
    }
  }
}

TEST(Prepare, LevelsAgreeOnEveryBit) {
  auto row = random_row(192, 0.01f);
  row[3] = kNaN;
  row[40] = kInfinity;
  row[70] = -kInfinity;
  row[100] = 1e-44f;
  for (size_t i = 128; i < 160; ++i) row[i] = 1e-40f * static_cast<float>(i - 140);
  for (size_t i = 160; i < 192; ++i) row[i] = 0;
  const KernelTable scalar = kernel_table(Level::kScalar);
  Activations expected(1, 192, 1);
  expected.plain = row;
  expected.hold(scalar, ActType::kBF16, 0);
  for (const Level level : available_levels()) {
    const KernelTable table = kernel_table(level);
    EXPECT_EQ(Int8Row(table, row, 32).bytes, Int8Row(scalar, row, 32).bytes) << table.level;
    Activations a = expected;
    a.hold(table, ActType::kBF16, 0);
    EXPECT_EQ(a.held, expected.held) << table.level;
  }
}

TEST(Prepare, ZerosAndValuesTooSmallToScaleBecomeZero) {
  for (const Level level : available_levels()) {
    const Int8Row zeros(kernel_table(level), std::vector<float>(32, -0.0f), 32);
    const Int8Row tiny(kernel_table(level), std::vector<float>(32, 1e-39f), 32);
    for (const Int8Row* held : {&zeros, &tiny}) {
      EXPECT_EQ(held->scales[0], 0.0f);
      EXPECT_EQ(held->sums[0], 0);
      EXPECT_EQ(held->codes, std::vector<int8_t>(32, 0));
    }
  }
}

TEST(Prepare, NaNAndInfinityStayVisible) {
  for (const Level level : available_levels()) {
    auto row = random_row(64, 1.0f);
    row[5] = kNaN;
    row[45] = -kInfinity;
    const Int8Row held(kernel_table(level), row, 32);
    EXPECT_TRUE(std::isnan(held.scales[0]));
    EXPECT_EQ(held.scales[1], kInfinity);
  }
}

TEST(Prepare, BF16RoundsToNearestEvenAndPadsWithZeros) {
  std::vector<float> row = random_row(37, 100.0f);
  row[0] = kNaN;
  row[1] = kInfinity;
  row[2] = 1.00390625f;  // halfway between two: to the even one
  row[3] = 1.01171875f;
  row[4] = 1e-40f;
  row[5] = std::numeric_limits<float>::max();
  for (const Level level : available_levels()) {
    Activations a(1, 37, 1);
    a.plain = row;
    a.hold(kernel_table(level), ActType::kBF16, 0);
    ASSERT_EQ(a.stride, 128);
    for (size_t i = 0; i < 64; ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, a.held.data() + 2 * i, 2);
      EXPECT_EQ(bits, i < 37 ? f32_to_bf16(row[i]) : 0) << level_name(level) << " element " << i;
    }
  }
}

}  // namespace
}  // namespace quire::backend::cpu
