// DType: how numbers lie in memory, plain or in quantized blocks, with sizes and fp16/bf16
// conversion.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace quire {

/// Plain element types and the block-quantized storage types of checkpoint files.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kI8,
  kU8,
  kI16,
  kI32,
  kI64,
  kF64,
  kBool,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

/// Elements a block holds (1 for plain types) and the bytes it takes.
struct DTypeInfo {
  std::string_view name;
  int64_t block_elements;
  int64_t block_bytes;
};

constexpr DTypeInfo dtype_info(DType type) {
  switch (type) {
    case DType::kF32:
      return {"F32", 1, 4};
    case DType::kF16:
      return {"F16", 1, 2};
    case DType::kBF16:
      return {"BF16", 1, 2};
    case DType::kI8:
      return {"I8", 1, 1};
    case DType::kU8:
      return {"U8", 1, 1};
    case DType::kI16:
      return {"I16", 1, 2};
    case DType::kI32:
      return {"I32", 1, 4};
    case DType::kI64:
      return {"I64", 1, 8};
    case DType::kF64:
      return {"F64", 1, 8};
    case DType::kBool:
      return {"BOOL", 1, 1};
    case DType::kQ4_0:
      return {"Q4_0", 32, 18};
    case DType::kQ4_1:
      return {"Q4_1", 32, 20};
    case DType::kQ5_0:
      return {"Q5_0", 32, 22};
    case DType::kQ5_1:
      return {"Q5_1", 32, 24};
    case DType::kQ8_0:
      return {"Q8_0", 32, 34};
    case DType::kQ2_K:
      return {"Q2_K", 256, 84};
    case DType::kQ3_K:
      return {"Q3_K", 256, 110};
    case DType::kQ4_K:
      return {"Q4_K", 256, 144};
    case DType::kQ5_K:
      return {"Q5_K", 256, 176};
    case DType::kQ6_K:
      return {"Q6_K", 256, 210};
  }
  return {"?", 1, 0};
}

constexpr std::string_view dtype_name(DType type) {
  return dtype_info(type).name;
}
constexpr bool is_block_quantized(DType type) {
  return dtype_info(type).block_elements > 1;
}

/// Bytes of a row of `elements`; elements must be a multiple of the block.
constexpr int64_t row_bytes(DType type, int64_t elements) {
  return elements / dtype_info(type).block_elements * dtype_info(type).block_bytes;
}

constexpr float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Rounds to nearest even; NaN stays NaN (quiet).
constexpr uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  const int shift = std::countl_zero(mantissa) - 21;
  mantissa = (mantissa << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | (static_cast<uint32_t>(113 - shift) << 23) | (mantissa << 13));
}

/// Rounds to nearest even; overflow gives infinity.
constexpr uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {
    const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | (rounded >> 13));
  }
  if (magnitude < 0x33000000u) return sign;
  const uint32_t exponent = magnitude >> 23;
  const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126 - exponent;
  const uint32_t half = 1u << (shift - 1);
  uint32_t result = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1);
  if (rest > half || (rest == half && (result & 1u))) ++result;
  return static_cast<uint16_t>(sign | result);
}

}  // namespace quire
