#include "quire/weights/q8_0.h"

#include "quire/weights/block32.h"

namespace quire::weights {

Q80Reader::Q80Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt8Group,
                    .group = kBlock,
                    .offset = backend::Offset::kNone}) {}

void Q80Reader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  resize_rows(rows, count, in(), false);
  uint8_t* codes = rows.codes.data();
  uint16_t* scales = rows.scales.data();
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* block = row(begin + r);
    for (int64_t b = 0; b < in() / kBlock; ++b, block += 34, codes += kBlock) {
      *scales++ = load_u16(block);
      // A signed byte plus 128 is the same bits with the sign flipped.
      for (int64_t i = 0; i < kBlock; ++i) {
        codes[i] = static_cast<uint8_t>(block[2 + i]) ^ uint8_t { 0x80 };
      }
    }
  }
}

}  // namespace quire::weights
