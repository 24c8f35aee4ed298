#include "quire/weights/q6_k.h"

#include "quire/weights/super_block.h"

namespace quire::weights {
namespace {

constexpr int64_t kGroup = 16;

/// Each half of the block, 128 inputs, has 64 low bytes and 32 upper ones. Its inputs 32 q + i have
/// their low bits in byte 32 (q % 2) + i (the upper half of it where q > 1), their upper bits in
/// bits 2 q and 2 q + 1 of byte i.
void join_codes(const std::byte* low, const std::byte* upper, uint8_t* codes) {
  for (int64_t half = 0; half < 2; ++half, low += 64, upper += 32) {
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t i = 0; i < 32; ++i) {
        const uint32_t pair = static_cast<uint32_t>(low[q % 2 * 32 + i]);
        const uint32_t top = static_cast<uint32_t>(upper[i]) >> 2 * q & 3u;
        const uint32_t code = (q < 2 ? pair & 15u : pair >> 4) | top << 4;
        *codes++ = static_cast<uint8_t>(code + 128 - 32);
      }
    }
  }
}

}  // namespace

Q6KReader::Q6KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {},
                    .layout = backend::Layout::kInt8Group,
                    .group = kGroup,
                    .super_group = kSuperBlock}) {}

void Q6KReader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  const auto stored = [&](int64_t r) { return row(begin + r); };
  read_super_rows(spec(), 210, count, rows, stored,
                  [&](const std::byte* block, size_t index, const SuperBlockRows& to) {
                    rows.scales[index] = load_u16(block + 208);
                    std::memcpy(to.sub_scales, block + 192, 16);
                    join_codes(block, block + 128, to.codes);
                  });
}

}  // namespace quire::weights
