#include "quire/backend/cpu/packer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "quire/backend/cpu/generic/matmul_order.h"
#include "quire/backend/cpu/matmul_cases.h"
#include "quire/base/error.h"

namespace quire::backend::cpu {
namespace {

/// Row `index` as the reader's own vectors say.
std::vector<float> expected_row(const WeightReader& reader, int64_t index) {
  WeightRows rows;
  reader.read(index, 1, rows);
  std::vector<float> out(static_cast<size_t>(reader.spec().in));
  decode_row(reader.spec(), rows, 0, out.data());
  return out;
}

std::vector<WeightSpec> specs() {
  return {dense_spec(DType::kF32, 5, 33),
          dense_spec(DType::kBF16, 7, 16),
          dense_spec(DType::kBF16, 8, 1),
          dense_spec(DType::kF16, 7, 33),
          int8_spec(64, 20, 32, Offset::kZeros),
          int4_spec(64, 33, 16, Offset::kZeros),
          two_levels(int4_spec(128, 33, 16, Offset::kMin), 64),
          two_levels(int4_spec(128, 16, 32, Offset::kConstant, 4), 64),
          two_levels(int8_spec(512, 17, 16), 256),
          two_levels(int4_spec(768, 17, 32, Offset::kMin), 256),
          int8_spec(64, 100, 32),
          int8_spec(16, 17, 8, Offset::kMin),
          int4_spec(64, 100, 32, Offset::kMin),
          int4_spec(48, 31, 24, Offset::kConstant, 8)};
}

TEST(Packer, UnpackedRowsAreTheRowsRead) {
  for (const WeightSpec& spec : specs()) {
    const RandomWeight reader(spec, 21);
    const auto weight = random_weight(spec, 21);
    ASSERT_EQ(weight->data.size(), weight->bytes());
    std::vector<float> row(static_cast<size_t>(spec.in));
    for (int64_t o = 0; o < spec.out; ++o) {
      unpack_row(*weight, o, row.data());
      ASSERT_EQ(row, expected_row(reader, o)) << spec.name << " row " << o;
    }
  }
}

TEST(Packer, PlacesCodesAsDocumented) {
  const WeightSpec spec = int4_spec(16, 20, 8, Offset::kMin);
  const RandomWeight reader(spec, 22);
  const auto weight = random_weight(spec, 22);
  WeightRows rows;
  reader.read(0, 20, rows);
  // A panel is two slices of a group: a line of scales and mins, two lines of codes.
  ASSERT_EQ(panel_shape(spec).panel_bytes(), 256);
  // Output 18 is lane 2 of panel 1; its input 13 is input 5 of slice 1: byte 1's high nibble.
  const auto* slice = reinterpret_cast<const uint8_t*>(weight->data.data()) + 256 + 128;
  EXPECT_EQ(slice[64 + 2 * 4 + 1] >> 4, rows.codes[18 * 16 + 13]);
  const auto* scales = reinterpret_cast<const uint16_t*>(slice);
  EXPECT_EQ(scales[2], rows.scales[18 * 2 + 1]);
  EXPECT_EQ(scales[16 + 2], rows.mins[18 * 2 + 1]);
  EXPECT_EQ(scales[4], 0);  // past the last output
}

TEST(Packer, ThreadsChangeNothing) {
  const WeightSpec spec = int8_spec(64, 333, 32);
  const auto alone = random_weight(spec, 23);
  std::atomic<int> calls{0};
  const ParallelFor on_threads = [&](int64_t count, const std::function<void(int64_t)>& fn) {
    std::vector<std::thread> threads;
    for (int64_t i = count; i-- > 0;) {
      threads.emplace_back([&fn, &calls, i] {
        fn(i);
        ++calls;
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  MemoryLedger ledger;
  const auto together = pack_weight(RandomWeight(spec, 23), &ledger, on_threads);
  EXPECT_GT(calls, 3);
  EXPECT_EQ(ledger.current(MemoryTag::kWeights), together->bytes());
  EXPECT_EQ(0, std::memcmp(alone->data.data(), together->data.data(),
                           static_cast<size_t>(alone->data.size())));
}

TEST(Packer, SaysWhichShapesCannotBe) {
  EXPECT_THROW(random_weight(int4_spec(40, 16, 12, Offset::kMin), 1), LoadError);
  EXPECT_THROW(random_weight(int4_spec(40, 16, 16, Offset::kMin), 1), LoadError);
  EXPECT_THROW(random_weight(int4_spec(32, 16, 32, Offset::kConstant, 16), 1), LoadError);
  EXPECT_THROW(random_weight(dense_spec(DType::kI8, 32, 16), 1), LoadError);
  EXPECT_THROW(random_weight(two_levels(int4_spec(128, 16, 32, Offset::kMin), 48), 1), LoadError);
  EXPECT_THROW(random_weight(two_levels(int4_spec(96, 16, 32, Offset::kMin), 64), 1), LoadError);
  EXPECT_THROW(random_weight(two_levels(int4_spec(64, 16, 32, Offset::kZeros), 64), 1), LoadError);
  EXPECT_THROW(random_weight(dense_spec(DType::kF32, kMaxMatmulInputs + 1, 1), 1), LoadError);
}

TEST(Packer, KindsFollowFromWeightAndActivations) {
  EXPECT_EQ(matmul_kind(dense_spec(DType::kF32, 8, 8), ActType::kF32), kDenseF32_F32);
  EXPECT_EQ(matmul_kind(dense_spec(DType::kF32, 8, 8), ActType::kBF16), std::nullopt);
  EXPECT_EQ(matmul_kind(dense_spec(DType::kBF16, 8, 8), ActType::kBF16), kDenseBF16_BF16);
  EXPECT_EQ(matmul_kind(dense_spec(DType::kBF16, 8, 8), ActType::kI8), std::nullopt);
  EXPECT_EQ(matmul_kind(int8_spec(8, 8, 8), ActType::kBF16), kInt8_BF16);
  EXPECT_EQ(matmul_kind(int4_spec(8, 8, 8, Offset::kMin), ActType::kI8), kInt4_I8);
}

}  // namespace
}  // namespace quire::backend::cpu
