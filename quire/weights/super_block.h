// Blocks of 256 weights, as GGUF's K-quants store them: sizes and codes the readers share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quire/backend/packed_weight.h"

namespace quire::weights {

inline constexpr int64_t kSuperBlock = 256;

/// Makes room for `count` rows of codes with scales (and mins) of two levels.
inline void resize_super_rows(backend::WeightRows& rows, int64_t count,
                              const backend::WeightSpec& spec) {
  const auto resize = [count](auto& values, int64_t cols) {
    values.resize(static_cast<size_t>(count * cols));
  };
  resize(rows.codes, spec.in);
  resize(rows.scales, spec.num_super_groups());
  resize(rows.sub_scales, spec.num_groups());
  if (spec.offset != backend::Offset::kMin) return;
  resize(rows.mins, spec.num_super_groups());
  resize(rows.sub_mins, spec.num_groups());
}

/// An fp16 number with its sign turned. Formats subtract minimums, layouts add them.
constexpr uint16_t negated_f16(uint16_t bits) {
  return bits ^ uint16_t { 0x8000 };
}

/// Where the parts of one super-block go.
struct SuperBlockRows {
  uint8_t* codes;
  int8_t* sub_scales;
  int8_t* sub_mins;  // null without
};

/// Fills `rows` super-block by super-block: `decode(block, index, rows)` with the bytes of each and
/// its place among `rows.scales` and `rows.mins`. `row(r)` is the place of row begin + r.
template <class Row, class Decode>
void read_super_rows(const backend::WeightSpec& spec, int64_t block_bytes, int64_t count,
                     backend::WeightRows& rows, Row row, Decode decode) {
  resize_super_rows(rows, count, spec);
  const int64_t blocks = spec.num_super_groups();
  const int64_t groups = spec.super_group / spec.group;
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* block = row(r);
    for (int64_t b = 0; b < blocks; ++b, block += block_bytes) {
      const int64_t index = r * blocks + b;
      decode(block, static_cast<size_t>(index),
             SuperBlockRows{
                 rows.codes.data() + index * kSuperBlock, rows.sub_scales.data() + index * groups,
                 rows.sub_mins.empty() ? nullptr : rows.sub_mins.data() + index * groups});
    }
  }
}

/// The eight scales and eight minimums of 6 bits that Q4_K and Q5_K pack into 12 bytes: bytes 0-3
/// and 4-7 hold those of groups 0-3; bytes 8-11 the low halves of groups 4-7, scale and minimum,
/// whose upper two bits lie on top of the first eight bytes.
inline void split_scales_6bit(const std::byte* packed, int8_t* scales, int8_t* mins) {
  const auto byte = [packed](int64_t i) { return static_cast<uint32_t>(packed[i]); };
  for (int64_t g = 0; g < 4; ++g) {
    scales[g] = static_cast<int8_t>(byte(g) & 63u);
    mins[g] = static_cast<int8_t>(byte(g + 4) & 63u);
    scales[g + 4] = static_cast<int8_t>((byte(g + 8) & 15u) | byte(g) >> 6 << 4);
    mins[g + 4] = static_cast<int8_t>(byte(g + 8) >> 4 | byte(g + 4) >> 6 << 4);
  }
}

}  // namespace quire::weights
