#include "quire/kv/block_table.h"

#include <utility>

#include "quire/base/check.h"

namespace quire::kv {

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  if (this == &other) return *this;
  clear();
  pool_ = other.pool_;
  blocks_ = std::exchange(other.blocks_, {});
  return *this;
}

bool BlockTable::append(int32_t n) {
  return pool_->acquire(n, blocks_.empty() ? kNoBlock : blocks_.back(), blocks_);
}

BlockTable BlockTable::fork() const {
  BlockTable copy;
  copy.pool_ = pool_;
  copy.blocks_ = blocks_;
  for (const BlockId block : blocks_) pool_->share(block);
  return copy;
}

std::optional<BlockCopy> BlockTable::make_writable(int32_t index) {
  if (!is_shared(index)) return std::nullopt;
  const BlockId shared = block(index);
  // The new block is taken at the end of the table, which has room for it, and moved to its place.
  QUIRE_CHECK(pool_->acquire(1, index > 0 ? block(index - 1) : kNoBlock, blocks_));
  const BlockId own = blocks_.back();
  blocks_.pop_back();
  blocks_[static_cast<size_t>(index)] = own;
  pool_->release(shared);
  return BlockCopy{.source = shared, .destination = own};
}

void BlockTable::truncate(int32_t num_blocks) {
  while (size() > num_blocks) {
    pool_->release(blocks_.back());
    blocks_.pop_back();
  }
}

}  // namespace quire::kv
