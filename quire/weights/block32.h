// Blocks of 32 weights, as GGUF's first-generation formats store them: sizes the readers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quire/backend/packed_weight.h"

namespace quire::weights {

inline constexpr int64_t kBlock = 32;

/// Makes room for `count` rows of `in` codes with one scale (and minimum) per 32 of them.
inline void resize_rows(backend::WeightRows& rows, int64_t count, int64_t in, bool has_min) {
  rows.codes.resize(static_cast<size_t>(count * in));
  rows.scales.resize(static_cast<size_t>(count * (in / kBlock)));
  if (has_min) rows.mins.resize(static_cast<size_t>(count * (in / kBlock)));
}

/// Splits 16 bytes into 32 codes: byte j holds code j in its low and code j + 16 in its high half.
inline void split_nibbles(const std::byte* packed, uint8_t* codes) {
  for (int64_t j = 0; j < kBlock / 2; ++j) {
    const auto pair = static_cast<uint8_t>(packed[j]);
    codes[j] = pair & 15u;
    codes[j + kBlock / 2] = static_cast<uint8_t>(pair >> 4);
  }
}

/// Joins 4 bytes of fifth bits (bit j of code j) and 16 bytes of nibbles to 32 codes of 5 bits.
inline void join_5bit(const std::byte* packed, uint8_t* codes) {
  uint32_t fifth;
  std::memcpy(&fifth, packed, sizeof(fifth));
  split_nibbles(packed + 4, codes);
  for (int64_t j = 0; j < kBlock; ++j) {
    codes[j] = static_cast<uint8_t>(codes[j] | (fifth >> j & 1u) << 4);
  }
}

}  // namespace quire::weights
