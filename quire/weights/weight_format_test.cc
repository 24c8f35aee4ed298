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
using backend::WeightRows;
using backend::WeightSpec;
using ::testing::HasSubstr;

uint32_t byte_at(const std::vector<std::byte>& bytes, int64_t index) {
  return static_cast<uint32_t>(bytes[static_cast<size_t>(index)]);
}

float half_at(const std::vector<std::byte>& bytes, int64_t index) {
  return f16_to_f32(static_cast<uint16_t>(byte_at(bytes, index) | byte_at(bytes, index + 1) << 8));
}

/// Element `k` of a block of 32 at byte `at`, straight from the formats' definitions.
float in_block32(DType type, const std::vector<std::byte>& bytes, int64_t at, int64_t k) {
  const auto nibble = [&](int64_t codes) {
    const uint32_t pair = byte_at(bytes, at + codes + k % 16);
    return k < 16 ? pair & 15u : pair >> 4;
  };
  const auto fifth = [&](int64_t bits) {
    return (byte_at(bytes, at + bits + k / 8) >> k % 8 & 1u) << 4;
  };
  const float scale = half_at(bytes, at);
  switch (type) {
    case DType::kQ4_0:
      return scale * (static_cast<float>(nibble(2)) - 8.0f);
    case DType::kQ4_1:
      return std::fma(scale, static_cast<float>(nibble(4)), half_at(bytes, at + 2));
    case DType::kQ5_0:
      return scale * (static_cast<float>(nibble(6) | fifth(2)) - 16.0f);
    case DType::kQ5_1:
      return std::fma(scale, static_cast<float>(nibble(8) | fifth(4)), half_at(bytes, at + 2));
    default:
      return scale * static_cast<float>(static_cast<int8_t>(byte_at(bytes, at + 2 + k)));
  }
}

/// Scale and minimum of 32 inputs, `index` of 8, from the 12 bytes at `at`.
std::pair<float, float> scales_6bit(const std::vector<std::byte>& bytes, int64_t at,
                                    int64_t index) {
  const auto byte = [&](int64_t i) { return byte_at(bytes, at + i); };
  if (index < 4) {
    return {static_cast<float>(byte(index) & 63u), static_cast<float>(byte(index + 4) & 63u)};
  }
  return {static_cast<float>((byte(index + 4) & 15u) + (byte(index - 4) / 64 << 4)),
          static_cast<float>(byte(index + 4) / 16 + (byte(index) / 64 << 4))};
}

/// Element `k` of a block of 256.
float in_super_block(DType type, const std::vector<std::byte>& bytes, int64_t at, int64_t k) {
  const int64_t half = k / 128;
  const int64_t quarter = k % 128 / 32;  // of the half
  const int64_t l = k % 32;
  const auto byte = [&](int64_t i) { return byte_at(bytes, at + i); };
  const auto two_bits = [&](int64_t codes) {
    return byte(codes + 32 * half + l) >> 2 * quarter & 3u;
  };
  switch (type) {
    case DType::kQ2_K: {
      const uint32_t scales = byte(k / 16);
      const float step = half_at(bytes, at + 80) * static_cast<float>(scales & 15u);
      return step * static_cast<float>(two_bits(16)) -
             half_at(bytes, at + 82) * static_cast<float>(scales >> 4);
    }
    case DType::kQ3_K: {
      const int64_t s = k / 16;
      const uint32_t low = s < 8 ? byte(96 + s) & 15u : byte(96 + s - 8) >> 4;
      const uint32_t scale = low + ((byte(104 + s % 4) >> 2 * (s / 4) & 3u) << 4);
      const bool third = (byte(l) >> (4 * half + quarter) & 1u) != 0;
      return half_at(bytes, at + 108) * (static_cast<float>(scale) - 32.0f) *
             (static_cast<float>(two_bits(32)) - (third ? 0.0f : 4.0f));
    }
    case DType::kQ6_K: {
      const uint32_t pair = byte(64 * half + 32 * (quarter % 2) + l);
      const uint32_t code = (quarter < 2 ? pair & 15u : pair >> 4) +
                            (byte(128 + 32 * half + l) >> 2 * quarter & 3u) * 16;
      const auto scale = static_cast<float>(static_cast<int8_t>(byte(192 + k / 16)));
      return half_at(bytes, at + 208) * scale * (static_cast<float>(code) - 32.0f);
    }
    default: {
      const auto [scale, min] = scales_6bit(bytes, at + 4, k / 32);
      const int64_t codes = type == DType::kQ4_K ? 16 : 48;
      const uint32_t pair = byte(codes + k / 64 * 32 + l);
      uint32_t code = k / 32 % 2 == 0 ? pair & 15u : pair >> 4;
      if (type == DType::kQ5_K) code += (byte(16 + l) >> (k / 32) & 1u) * 16;
      return half_at(bytes, at) * scale * static_cast<float>(code) - half_at(bytes, at + 2) * min;
    }
  }
}

/// Element `k` of row `row`.
float reference(DType type, const std::vector<std::byte>& bytes, int64_t in, int64_t row,
                int64_t k) {
  const auto [name, elements, block_bytes] = dtype_info(type);
  const int64_t at = (row * in + k) / elements * block_bytes;
  if (elements == 32) return in_block32(type, bytes, at, k % 32);
  if (elements == 256) return in_super_block(type, bytes, at, k % 256);
  if (type == DType::kF16) return half_at(bytes, at);
  if (type == DType::kBF16) {
    return bf16_to_f32(static_cast<uint16_t>(byte_at(bytes, at) | byte_at(bytes, at + 1) << 8));
  }
  float value;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

/// Where a block holds fp16 numbers.
std::vector<int64_t> half_offsets(DType type) {
  switch (type) {
    case DType::kF32:
      return {};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

/// Random bytes; wherever a half-precision number stands, it is a finite one.
std::vector<std::byte> random_matrix(DType type, int64_t out, int64_t in) {
  std::vector<std::byte> bytes(static_cast<size_t>(out * row_bytes(type, in)));
  std::mt19937 random(7);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  const int64_t unit = dtype_info(type).block_bytes;
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(unit)) {
    for (const int64_t half : half_offsets(type)) {
      bytes[at + static_cast<size_t>(half) + 1] &= std::byte{0xbb};  // exponent never all ones
    }
  }
  if (type == DType::kF32) {
    for (size_t at = 3; at < bytes.size(); at += 4) bytes[at] &= std::byte{0xbf};
  }
  return bytes;
}

checkpoint::StoredTensor stored(DType type, int64_t out, int64_t in,
                                const std::vector<std::byte>& bytes) {
  return {.name = "w", .dtype = type, .shape = {out, in}, .bytes = bytes, .file = "file"};
}

class WeightFormat : public ::testing::TestWithParam<DType> {};

TEST_P(WeightFormat, DecodesToWhatTheFormatDefines) {
  const int64_t out = 12;
  const int64_t in = dtype_info(GetParam()).block_elements == 256 ? 512 : 96;
  const auto bytes = random_matrix(GetParam(), out, in);
  for (const RowOrder order : {RowOrder{}, RowOrder{.interleaved_head_dim = 6}}) {
    const auto reader =
        make_weight_reader(stored(GetParam(), out, in, bytes), WeightDType::kFloat32, order);
    EXPECT_EQ(reader->spec().out, out);
    EXPECT_EQ(reader->spec().in, in);
    for (const int64_t begin : {0, 5}) {
      WeightRows rows;
      std::vector<float> decoded(static_cast<size_t>(in));
      reader->read(begin, 7, rows);
      for (int64_t r = 0; r < 7; ++r) {
        backend::decode_row(reader->spec(), rows, r, decoded.data());
        for (int64_t k = 0; k < in; ++k) {
          const float expected = reference(GetParam(), bytes, in, order.stored_row(begin + r), k);
          ASSERT_EQ(decoded[static_cast<size_t>(k)], expected) << begin + r << " " << k;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WeightFormat,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0,
                                           DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                           DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                                           DType::kQ6_K),
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
  EXPECT_EQ(dense(DType::kF16, 8, WeightDType::kAuto), DType::kF16);
  EXPECT_EQ(dense(DType::kF16, 8, WeightDType::kFloat32), DType::kF32);
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
  const WeightSpec f16{.name = {}, .layout = Layout::kDense, .dtype = DType::kF16};
  const WeightSpec bf16{.name = {}, .layout = Layout::kDense, .dtype = DType::kBF16};
  const WeightSpec int4{.name = {}, .layout = Layout::kInt4Group, .group = 32};
  EXPECT_EQ(activation_for(f32, ActivationDType::kBF16, ActType::kF32), ActType::kF32);
  EXPECT_EQ(activation_for(f32, ActivationDType::kI8, ActType::kF32), ActType::kF32);
  EXPECT_EQ(activation_for(f16, ActivationDType::kBF16, ActType::kBF16), ActType::kF32);
  EXPECT_EQ(activation_for(bf16, ActivationDType::kI8, ActType::kF32), ActType::kBF16);
  EXPECT_EQ(activation_for(bf16, ActivationDType::kAuto, ActType::kBF16), ActType::kBF16);
  EXPECT_EQ(activation_for(bf16, ActivationDType::kF32, ActType::kBF16), ActType::kF32);
  EXPECT_EQ(activation_for(int4, ActivationDType::kI8, ActType::kF32), ActType::kI8);
  EXPECT_EQ(activation_for(int4, ActivationDType::kAuto, ActType::kBF16), ActType::kBF16);
}

}  // namespace
}  // namespace quire::weights
