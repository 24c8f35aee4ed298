// BlockTable: the blocks that hold one sequence's tokens, in their order; it owns a reference to
// each.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "quire/kv/block_pool.h"

namespace quire::kv {

/// Move-only; gives its references back when cleared or destroyed, last block first, so that under
/// an LRU order a prefix outlives its suffix. Position p lies in block p / block_tokens.
class BlockTable {
 public:
  /// A table that can hold nothing.
  BlockTable() = default;
  /// An empty table; `pool` outlives it.
  explicit BlockTable(BlockPool& pool) : pool_(&pool) {}
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  ~BlockTable() { clear(); }

  /// Makes room for `num_blocks` entries (and make_writable's spare one), so that growing to them
  /// allocates nothing.
  void reserve(int32_t num_blocks) { blocks_.reserve(static_cast<size_t>(num_blocks) + 1); }
  /// Takes `n` more blocks, contiguous with the last where possible. False, and the table
  /// unchanged, if fewer are free.
  [[nodiscard]] bool append(int32_t n);
  /// Adds a block that others hold, or that is cached, as the last one.
  void adopt(BlockId block) {
    pool_->share(block);
    blocks_.push_back(block);
  }
  /// A table of the same blocks, with a reference of its own to each.
  BlockTable fork() const;
  /// Whether the block at `index` (of the table) has another holder, and so may not be written.
  bool is_shared(int32_t index) const { return pool_->ref_count(block(index)) > 1; }
  /// Makes the block at `index` this table's alone. If it is shared, a free block takes its place
  /// (one must exist) and the returned copy is to be done; the last holder keeps the block itself.
  std::optional<BlockCopy> make_writable(int32_t index);
  /// Gives the blocks behind the first `num_blocks` back, last block first.
  void truncate(int32_t num_blocks);
  /// Gives all references back.
  void clear() { truncate(0); }

  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }
  std::span<const BlockId> blocks() const { return blocks_; }
  BlockId block(int32_t index) const { return blocks_[static_cast<size_t>(index)]; }
  /// The KV slot of the token at `position`: block * block_tokens + offset.
  int32_t slot(int32_t position) const {
    const int32_t block_tokens = pool_->block_tokens();
    return block(position / block_tokens) * block_tokens + position % block_tokens;
  }

 private:
  BlockPool* pool_ = nullptr;
  std::vector<BlockId> blocks_;
};

}  // namespace quire::kv
