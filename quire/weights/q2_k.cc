#include "quire/weights/q2_k.h"

#include "quire/weights/super_block.h"

namespace quire::weights {
namespace {

constexpr int64_t kGroup = 16;

/// Each half of the block, 128 inputs, has 32 bytes: input 32 q + i in bits 2 q and 2 q + 1 of byte
/// i.
void split_codes(const std::byte* packed, uint8_t* codes) {
  for (int64_t half = 0; half < 2; ++half, packed += 32) {
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t i = 0; i < 32; ++i) {
        *codes++ = static_cast<uint8_t>(static_cast<uint32_t>(packed[i]) >> 2 * q & 3u);
      }
    }
  }
}

void split_scales(const std::byte* packed, int8_t* scales, int8_t* mins) {
  for (int64_t g = 0; g < kSuperBlock / kGroup; ++g) {
    scales[g] = static_cast<int8_t>(static_cast<uint32_t>(packed[g]) & 15u);
    mins[g] = static_cast<int8_t>(static_cast<uint32_t>(packed[g]) >> 4);
  }
}

}  // namespace

Q2KReader::Q2KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt4Group,
                    .group = kGroup,
                    .offset = backend::Offset::kMin,
                    .super_group = kSuperBlock}) {}

void Q2KReader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  const auto stored = [&](int64_t r) { return row(begin + r); };
  read_super_rows(spec(), 84, count, rows, stored,
                  [&](const std::byte* block, size_t index, const SuperBlockRows& to) {
                    rows.scales[index] = load_u16(block + 80);
                    rows.mins[index] = negated_f16(load_u16(block + 82));
                    split_scales(block, to.sub_scales, to.sub_mins);
                    split_codes(block + 16, to.codes);
                  });
}

}  // namespace quire::weights
