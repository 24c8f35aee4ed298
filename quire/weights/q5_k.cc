#include "quire/weights/q5_k.h"

#include "quire/weights/super_block.h"

namespace quire::weights {
namespace {

constexpr int64_t kGroup = 32;

/// Low halves as Q4_K has them; bit g of upper[i] is the fifth bit of input i of group g.
void join_codes(const std::byte* upper, const std::byte* low, uint8_t* codes) {
  for (int64_t g = 0; g < kSuperBlock / kGroup; ++g) {
    for (int64_t i = 0; i < kGroup; ++i) {
      const uint32_t pair = static_cast<uint32_t>(low[g / 2 * kGroup + i]);
      const uint32_t fifth = static_cast<uint32_t>(upper[i]) >> g & 1u;
      const uint32_t code = (g % 2 == 0 ? pair & 15u : pair >> 4) | fifth << 4;
      codes[g * kGroup + i] = static_cast<uint8_t>(code + 128);
    }
  }
}

}  // namespace

Q5KReader::Q5KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt8Group,
                    .group = kGroup,
                    .offset = backend::Offset::kMin,
                    .super_group = kSuperBlock}) {}

void Q5KReader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  const auto stored = [&](int64_t r) { return row(begin + r); };
  read_super_rows(spec(), 176, count, rows, stored,
                  [&](const std::byte* block, size_t index, const SuperBlockRows& to) {
                    rows.scales[index] = load_u16(block);
                    rows.mins[index] = negated_f16(load_u16(block + 2));
                    split_scales_6bit(block + 4, to.sub_scales, to.sub_mins);
                    join_codes(block + 16, block + 48, to.codes);
                  });
}

}  // namespace quire::weights
