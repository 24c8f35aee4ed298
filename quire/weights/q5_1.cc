#include "quire/weights/q5_1.h"

#include "quire/weights/block32.h"

namespace quire::weights {

Q51Reader::Q51Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt8Group,
                    .group = kBlock,
                    .offset = backend::Offset::kMin}) {}

void Q51Reader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  resize_rows(rows, count, in(), true);
  uint8_t* codes = rows.codes.data();
  uint16_t* scales = rows.scales.data();
  uint16_t* mins = rows.mins.data();
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* block = row(begin + r);
    for (int64_t b = 0; b < in() / kBlock; ++b, block += 24, codes += kBlock) {
      *scales++ = load_u16(block);
      *mins++ = load_u16(block + 2);
      join_5bit(block + 4, codes);
      // As int8 codes are held: code + 128.
      for (int64_t i = 0; i < kBlock; ++i) codes[i] = static_cast<uint8_t>(codes[i] + 128);
    }
  }
}

}  // namespace quire::weights
