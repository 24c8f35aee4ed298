#include "quire/runner/kv_store.h"

#include <cstring>

#include "quire/base/check.h"

namespace quire::runner {

KvStore::KvStore(const Options& options) {
  QUIRE_CHECK(options.num_blocks > 0);
  for (const backend::CacheGroupSpec& group : options.groups) {
    HugeBuffer& buffer = buffers_.emplace_back(group.block_bytes() * options.num_blocks,
                                               MemoryTag::kKvCache, options.ledger);
    slabs_.push_back({.data = buffer.data(),
                      .layer_stride = group.block_layer_bytes() * options.num_blocks,
                      .num_blocks = options.num_blocks});
  }
}

int64_t KvStore::bytes() const {
  int64_t sum = 0;
  for (const HugeBuffer& buffer : buffers_) sum += buffer.size();
  return sum;
}

void KvStore::poison() {
  // All bits set is a NaN in bf16 and in fp32.
  for (HugeBuffer& buffer : buffers_) {
    std::memset(buffer.data(), 0xff, static_cast<size_t>(buffer.size()));
  }
}

int64_t KvStore::bytes_for(std::span<const backend::CacheGroupSpec> groups, int64_t num_blocks) {
  int64_t sum = 0;
  for (const backend::CacheGroupSpec& group : groups) sum += group.block_bytes() * num_blocks;
  return sum;
}

}  // namespace quire::runner
