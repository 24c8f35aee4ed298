#include "quire/weights/q3_k.h"

#include "quire/weights/super_block.h"

namespace quire::weights {
namespace {

constexpr int64_t kGroup = 16;

/// Low bits as Q2_K has its codes; bit 4 h + q of upper[i] is the third bit of input 128 h + 32 q +
/// i.
void join_codes(const std::byte* upper, const std::byte* low, uint8_t* codes) {
  for (int64_t half = 0; half < 2; ++half, low += 32) {
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t i = 0; i < 32; ++i) {
        const uint32_t third = static_cast<uint32_t>(upper[i]) >> (4 * half + q) & 1u;
        const uint32_t code = (static_cast<uint32_t>(low[i]) >> 2 * q & 3u) | third << 2;
        *codes++ = static_cast<uint8_t>(code);
      }
    }
  }
}

/// Sixteen scales of 6 bits in 12 bytes: the low 4 bits of scale g in byte g % 8 (the upper half of
/// it where g > 7), its upper 2 in bits 2 (g / 4) and 2 (g / 4) + 1 of byte 8 + g % 4.
void split_scales(const std::byte* packed, int8_t* scales) {
  for (int64_t g = 0; g < kSuperBlock / kGroup; ++g) {
    const uint32_t pair = static_cast<uint32_t>(packed[g % 8]);
    const uint32_t top = static_cast<uint32_t>(packed[8 + g % 4]) >> 2 * (g / 4) & 3u;
    const uint32_t scale = (g < 8 ? pair & 15u : pair >> 4) | top << 4;
    scales[g] = static_cast<int8_t>(static_cast<int32_t>(scale) - 32);
  }
}

}  // namespace

Q3KReader::Q3KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt4Group,
                    .group = kGroup,
                    .offset = backend::Offset::kConstant,
                    .zero = 4,
                    .super_group = kSuperBlock}) {}

void Q3KReader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  const auto stored = [&](int64_t r) { return row(begin + r); };
  read_super_rows(spec(), 110, count, rows, stored,
                  [&](const std::byte* block, size_t index, const SuperBlockRows& to) {
                    rows.scales[index] = load_u16(block + 108);
                    split_scales(block + 96, to.sub_scales);
                    join_codes(block, block + 32, to.codes);
                  });
}

}  // namespace quire::weights
