#include "quire/weights/q4_1.h"

#include "quire/weights/block32.h"

namespace quire::weights {

Q41Reader::Q41Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt4Group,
                    .group = kBlock,
                    .offset = backend::Offset::kMin}) {}

void Q41Reader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  resize_rows(rows, count, in(), true);
  uint8_t* codes = rows.codes.data();
  uint16_t* scales = rows.scales.data();
  uint16_t* mins = rows.mins.data();
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* block = row(begin + r);
    for (int64_t b = 0; b < in() / kBlock; ++b, block += 20, codes += kBlock) {
      *scales++ = load_u16(block);
      *mins++ = load_u16(block + 2);
      split_nibbles(block + 4, codes);
    }
  }
}

}  // namespace quire::weights
