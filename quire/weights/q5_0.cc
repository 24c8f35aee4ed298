#include "quire/weights/q5_0.h"

#include "quire/weights/block32.h"

namespace quire::weights {

Q50Reader::Q50Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {}, .layout = backend::Layout::kInt8Group, .group = kBlock}) {}

void Q50Reader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  resize_rows(rows, count, in(), false);
  uint8_t* codes = rows.codes.data();
  uint16_t* scales = rows.scales.data();
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* block = row(begin + r);
    for (int64_t b = 0; b < in() / kBlock; ++b, block += 22, codes += kBlock) {
      *scales++ = load_u16(block);
      join_5bit(block + 2, codes);
      // As int8 codes are held: code + 128, and here code - 16 is the weight's.
      for (int64_t i = 0; i < kBlock; ++i) codes[i] = static_cast<uint8_t>(codes[i] + 112);
    }
  }
}

}  // namespace quire::weights
