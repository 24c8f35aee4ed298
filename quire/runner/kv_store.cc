#include "quire/runner/kv_store.h"

#include <cstring>

#include "quire/base/check.h"

namespace quire::runner {

KvStore::KvStore(const Options& options) : groups_(options.groups) {
  QUIRE_CHECK(options.num_blocks > 0);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const backend::CacheGroupSpec& group = groups_[g];
    HugeBuffer& buffer = buffers_.emplace_back(group.block_bytes() * options.num_blocks,
                                               MemoryTag::kKvCache, options.ledger);
    slabs_.push_back({.data = buffer.data(),
                      .layer_stride = group.block_layer_bytes() * options.num_blocks,
                      .num_blocks = options.num_blocks});
    if (options.swap == nullptr || options.swap->num_blocks() == 0) continue;
    slabs_[g].swap = options.swap->data() + options.swap->group_offset(g);
    slabs_[g].swap_block_stride = options.swap->block_bytes();
    slabs_[g].num_swap_blocks = options.swap->num_blocks();
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

void KvStore::poison(size_t group, int64_t block) {
  const backend::KvSlab& slab = slabs_[group];
  const int64_t bytes = groups_[group].block_layer_bytes();
  for (int32_t layer = 0; layer < groups_[group].num_layers; ++layer) {
    std::memset(slab.data + layer * slab.layer_stride + block * bytes, 0xff,
                static_cast<size_t>(bytes));
  }
}

int64_t KvStore::bytes_for(std::span<const backend::CacheGroupSpec> groups, int64_t num_blocks) {
  int64_t sum = 0;
  for (const backend::CacheGroupSpec& group : groups) sum += group.block_bytes() * num_blocks;
  return sum;
}

}  // namespace quire::runner
