// Blocks of 32 weights, as GGUF's first-generation formats store them: sizes the readers share.
#pragma once

#include <cstdint>

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

}  // namespace quire::weights
