#include "quire/weights/q4_k.h"

#include "quire/weights/super_block.h"

namespace quire::weights {
namespace {

constexpr int64_t kGroup = 32;

/// Each 32 bytes hold the codes of two groups, the first in the low halves.
void split_codes(const std::byte* packed, uint8_t* codes) {
  for (int64_t i = 0; i < kSuperBlock / 2; ++i) {
    const auto pair = static_cast<uint8_t>(packed[i]);
    uint8_t* low = codes + i / kGroup * 2 * kGroup + i % kGroup;
    low[0] = pair & 15u;
    low[kGroup] = static_cast<uint8_t>(pair >> 4);
  }
}

}  // namespace

Q4KReader::Q4KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt4Group,
                    .group = kGroup,
                    .offset = backend::Offset::kMin,
                    .super_group = kSuperBlock}) {}

void Q4KReader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  const auto stored = [&](int64_t r) { return row(begin + r); };
  read_super_rows(spec(), 144, count, rows, stored,
                  [&](const std::byte* block, size_t index, const SuperBlockRows& to) {
                    rows.scales[index] = load_u16(block);
                    rows.mins[index] = negated_f16(load_u16(block + 2));
                    split_scales_6bit(block + 4, to.sub_scales, to.sub_mins);
                    split_codes(block + 16, to.codes);
                  });
}

}  // namespace quire::weights
