#include "quire/weights/weight_format.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/base/error.h"
#include "quire/weights/testing/memory_source.h"

namespace quire::weights {
namespace {

using backend::Layout;
using backend::Offset;
using backend::WeightRows;
using backend::WeightSpec;
using ::testing::HasSubstr;

uint32_t byte_at(const std::vector<std::byte>& bytes, int64_t index) {
  return static_cast<uint32_t>(bytes[static_cast<size_t>(index)]);
}

float half_at(const std::vector<std::byte>& bytes, int64_t index) {
  return f16_to_f32(static_cast<uint16_t>(byte_at(bytes, index) | byte_at(bytes, index + 1) << 8));
}

/// Element `k` of row `row` straight from the formats' definitions, one element at a time.
float reference(DType type, const std::vector<std::byte>& bytes, int64_t in, int64_t row,
                int64_t k) {
  const int64_t block = row * row_bytes(type, in) + k / 32 * dtype_info(type).block_bytes;
  const int64_t j = k % 32;
  const auto nibble = [&](int64_t codes) {
    const uint32_t pair = byte_at(bytes, block + codes + j % 16);
    return static_cast<float>(j < 16 ? pair & 15u : pair >> 4);
  };
  switch (type) {
    case DType::kQ4_0:
      return half_at(bytes, block) * (nibble(2) - 8.0f);
    case DType::kQ4_1:
      return std::fma(half_at(bytes, block), nibble(4), half_at(bytes, block + 2));
    case DType::kQ8_0:
      return half_at(bytes, block) *
             static_cast<float>(static_cast<int8_t>(byte_at(bytes, block + 2 + j)));
    case DType::kF16:
      return half_at(bytes, row * in * 2 + k * 2);
    case DType::kBF16:
      return bf16_to_f32(static_cast<uint16_t>(byte_at(bytes, row * in * 2 + k * 2) |
                                               byte_at(bytes, row * in * 2 + k * 2 + 1) << 8));
    default: {
      float value;
      std::memcpy(&value, bytes.data() + (row * in + k) * 4, 4);
      return value;
    }
  }
}

/// Random bytes; wherever a half-precision number stands, it is a finite one.
std::vector<std::byte> random_matrix(DType type, int64_t out, int64_t in) {
  std::vector<std::byte> bytes(static_cast<size_t>(out * row_bytes(type, in)));
  std::mt19937 random(7);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  const int64_t unit = dtype_info(type).block_bytes;
  const int64_t halves = type == DType::kQ4_1 ? 2 : type == DType::kF32 ? 0 : 1;
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(unit)) {
    for (int64_t h = 0; h < halves; ++h) {
      bytes[at + static_cast<size_t>(2 * h) + 1] &= std::byte{0xbb};  // exponent never all ones
    }
  }
  if (type == DType::kF32) {
    for (size_t at = 3; at < bytes.size(); at += 4) bytes[at] &= std::byte{0xbf};
  }
  return bytes;
}

/// What a reader's codes, scales and offsets stand for.
float decoded(const WeightSpec& spec, const WeightRows& rows, int64_t row, int64_t k) {
  if (spec.layout == Layout::kDense) return rows.values[static_cast<size_t>(row * spec.in + k)];
  const auto group = static_cast<size_t>(row * spec.num_groups() + k / spec.group);
  const float scale = f16_to_f32(rows.scales[group]);
  const int32_t bias = spec.layout == Layout::kInt8Group ? 128 : 0;
  const int32_t code = rows.codes[static_cast<size_t>(row * spec.in + k)] - bias;
  if (spec.offset == Offset::kMin) {
    return std::fma(scale, static_cast<float>(code), f16_to_f32(rows.mins[group]));
  }
  return scale * static_cast<float>(code - spec.zero);
}

checkpoint::StoredTensor stored(DType type, int64_t out, int64_t in,
                                const std::vector<std::byte>& bytes) {
  return {.name = "w", .dtype = type, .shape = {out, in}, .bytes = bytes, .file = "file"};
}

class WeightFormat : public ::testing::TestWithParam<DType> {};

TEST_P(WeightFormat, DecodesToWhatTheFormatDefines) {
  const int64_t out = 12;
  const int64_t in = 96;
  const auto bytes = random_matrix(GetParam(), out, in);
  for (const RowOrder order : {RowOrder{}, RowOrder{.interleaved_head_dim = 6}}) {
    const auto reader =
        make_weight_reader(stored(GetParam(), out, in, bytes), WeightDType::kFloat32, order);
    EXPECT_EQ(reader->spec().out, out);
    EXPECT_EQ(reader->spec().in, in);
    for (const int64_t begin : {0, 5}) {
      WeightRows rows;
      reader->read(begin, 7, rows);
      for (int64_t r = 0; r < 7; ++r) {
        for (int64_t k = 0; k < in; ++k) {
          const float expected = reference(GetParam(), bytes, in, order.stored_row(begin + r), k);
          ASSERT_EQ(decoded(reader->spec(), rows, r, k), expected) << begin + r << " " << k;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WeightFormat,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0,
                                           DType::kQ4_1, DType::kQ8_0),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

TEST(RowOrder, UndoesTheInterleaving) {
  // Writing: model row [head][half][i] is stored at [head][i][half].
  const int64_t head_dim = 8;
  std::vector<int64_t> file;
  for (int64_t head = 0; head < 3; ++head) {
    for (int64_t i = 0; i < head_dim / 2; ++i) {
      for (int64_t half = 0; half < 2; ++half) {
        file.push_back(head * head_dim + half * head_dim / 2 + i);
      }
    }
  }
  const RowOrder order{.interleaved_head_dim = head_dim};
  for (int64_t row = 0; row < 24; ++row) {
    EXPECT_EQ(file[static_cast<size_t>(order.stored_row(row))], row);
    EXPECT_EQ(RowOrder{}.stored_row(row), row);
  }
}

TEST(MakeWeightReader, ChoosesTheDenseType) {
  const std::vector<std::byte> bytes(64);
  const auto dense = [&](DType type, int64_t in, WeightDType wanted) {
    return make_weight_reader(stored(type, 4, in, bytes), wanted)->spec().dtype;
  };
  EXPECT_EQ(dense(DType::kF16, 8, WeightDType::kAuto), DType::kF32);
  EXPECT_EQ(dense(DType::kF16, 8, WeightDType::kBFloat16), DType::kBF16);
  EXPECT_EQ(dense(DType::kBF16, 8, WeightDType::kAuto), DType::kBF16);
  EXPECT_EQ(dense(DType::kBF16, 8, WeightDType::kFloat32), DType::kF32);
  EXPECT_EQ(dense(DType::kF32, 4, WeightDType::kFloat16), DType::kF32);
  EXPECT_EQ(dense(DType::kF32, 4, WeightDType::kBFloat16), DType::kBF16);
}

std::string load_error(const checkpoint::StoredTensor& tensor, RowOrder order = {}) {
  try {
    make_weight_reader(tensor, WeightDType::kAuto, order);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

TEST(MakeWeightReader, RefusesWhatItCannotRead) {
  const std::vector<std::byte> bytes(72);
  EXPECT_THAT(load_error(stored(DType::kI32, 2, 9, bytes)), HasSubstr("I32"));
  EXPECT_THAT(load_error(stored(DType::kQ4_0, 2, 33, bytes)), HasSubstr("blocks of 32"));
  EXPECT_THAT(load_error(stored(DType::kQ4_0, 5, 32, bytes)), HasSubstr("90 bytes"));
  EXPECT_THAT(load_error(stored(DType::kQ4_0, 4, 32, bytes), {.interleaved_head_dim = 8}),
              HasSubstr("heads of 8"));
  auto vector = stored(DType::kF32, 1, 18, bytes);
  vector.shape = {18};
  EXPECT_THAT(load_error(vector), HasSubstr("a matrix"));
}

TEST(ActivationFor, FollowsTheOptionWhereTheWeightAllows) {
  using backend::ActType;
  const WeightSpec f32{.name = {}, .layout = Layout::kDense, .dtype = DType::kF32};
  const WeightSpec bf16{.name = {}, .layout = Layout::kDense, .dtype = DType::kBF16};
  const WeightSpec int4{.name = {}, .layout = Layout::kInt4Group, .group = 32};
  EXPECT_EQ(activation_for(f32, ActivationDType::kBF16, ActType::kF32), ActType::kF32);
  EXPECT_EQ(activation_for(f32, ActivationDType::kI8, ActType::kF32), ActType::kF32);
  EXPECT_EQ(activation_for(bf16, ActivationDType::kI8, ActType::kF32), ActType::kBF16);
  EXPECT_EQ(activation_for(bf16, ActivationDType::kAuto, ActType::kBF16), ActType::kBF16);
  EXPECT_EQ(activation_for(bf16, ActivationDType::kF32, ActType::kBF16), ActType::kF32);
  EXPECT_EQ(activation_for(int4, ActivationDType::kI8, ActType::kF32), ActType::kI8);
  EXPECT_EQ(activation_for(int4, ActivationDType::kAuto, ActType::kBF16), ActType::kBF16);
}

}  // namespace
}  // namespace quire::weights
