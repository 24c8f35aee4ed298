#include "quire/weights/q4_0.h"

#include "quire/weights/block32.h"

namespace quire::weights {

Q40Reader::Q40Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt4Group,
                    .group = kBlock,
                    .offset = backend::Offset::kConstant,
                    .zero = 8}) {}

void Q40Reader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  resize_rows(rows, count, in(), false);
  uint8_t* codes = rows.codes.data();
  uint16_t* scales = rows.scales.data();
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* block = row(begin + r);
    for (int64_t b = 0; b < in() / kBlock; ++b, block += 18, codes += kBlock) {
      *scales++ = load_u16(block);
      split_nibbles(block + 2, codes);
    }
  }
}

}  // namespace quire::weights
