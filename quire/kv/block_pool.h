// BlockPool: which blocks of the KV cache are free, how many hold each of the others, and which are
// known by their hash; bytes are elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quire/kv/index_list.h"
#include "quire/kv/prefix_index.h"

namespace quire::kv {

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;

/// A block's bytes that are to be copied before the destination is written.
struct BlockCopy {
  BlockId source = kNoBlock;
  BlockId destination = kNoBlock;
};

/// Blocks are numbered 0..num_blocks-1 and preallocated; taking one is O(1) and allocates nothing.
/// The free list is in the order of reuse: blocks are taken from its head, and a freed block goes
/// to its head, since the block used last is the one still in the processor's caches.
///
/// A published block keeps its content when it is freed: it goes to the list's tail, behind all
/// that hold nothing, and can be shared again until it is taken for something else; the one freed
/// longest ago goes first. Extents are taken only where none of their blocks is published.
///
/// Behind it may lie a second tier, a pool of its own: a published block that is taken for
/// something else leaves its content there, published under the same name and held by nobody.
class BlockPool {
 public:
  /// Blocks [k * kExtentBlocks, (k + 1) * kExtentBlocks) form an extent: what a sequence is given
  /// to grow into when the block behind its last one is taken, and what memory is committed by.
  static constexpr int32_t kExtentBlocks = 16;

  struct Options {
    int32_t num_blocks = 0;
    int32_t block_tokens = 16;
    int32_t hash_bits = 64;  // see PrefixIndex
  };

  explicit BlockPool(Options options);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Takes `n` blocks, each with one reference, and appends them to `out`: each the one behind the
  /// block before it (the first behind `after`, which may be kNoBlock) if that is free, else the
  /// first of a wholly free extent, else the head of the free list. False, and nothing taken, if
  /// fewer than `n` are free.
  [[nodiscard]] bool acquire(int32_t n, BlockId after, std::vector<BlockId>& out);
  /// Adds a reference to a block in use, or to a free one that is published.
  void share(BlockId block);
  /// Gives one reference back; the last one frees the block.
  void release(BlockId block);

  /// Makes a block in use, whose slots are all written and will not be again, known by `hash`.
  /// False where another block is known by it already.
  bool publish(BlockId block, const BlockHash& hash, const BlockHash& parent,
               std::span<const int32_t> tokens);
  /// Gives the pool its second tier, which outlives it. Once, before anything is published.
  void set_tier(BlockPool& tier);
  /// The copies from this pool (source) to its tier (destination) that acquire() and
  /// fill_tier() made necessary since clear_moved(), in their order: to be done before anything
  /// else is done to the blocks.
  std::span<const BlockCopy> moved() const { return moved_; }
  void clear_moved() { moved_.clear(); }
  /// Moves the content of all published blocks without a holder that the tier lacks to it, the last
  /// used first, as far as its unheld blocks last; what the tier alone has goes before what both
  /// have.
  void fill_tier();
  /// Publishes a free block that holds nothing yet; its bytes are there already. False, and nothing
  /// done, where it is not such a block or another one is known by `hash`.
  bool restore(BlockId block, const BlockHash& hash, const BlockHash& parent,
               std::span<const int32_t> tokens);
  /// Calls fn(block, hash, parent, tokens) for the published blocks without a holder, the one to
  /// be taken next first.
  template <typename Function>
  void for_each_cached(Function&& fn) const {
    for (BlockId block = free_.front(); block != free_.end(); block = free_.next(block)) {
      if (is_published(block))
        fn(block, index_.hash(block), index_.parent(block), index_.tokens(block));
    }
  }

  /// The block published under `hash` with this parent and these tokens, or kNoBlock. Takes no
  /// reference.
  BlockId find(const BlockHash& hash, const BlockHash& parent,
               std::span<const int32_t> tokens) const {
    return index_.find(hash, parent, tokens);
  }
  bool is_published(BlockId block) const { return index_.contains(block); }
  int32_t num_published() const { return index_.size(); }
  /// Blocks that lost their hash to be taken for something else, so far.
  int64_t num_evictions() const { return num_evictions_; }

  int32_t ref_count(BlockId block) const { return refs_[static_cast<size_t>(block)]; }
  int32_t num_blocks() const { return options_.num_blocks; }
  int32_t num_free() const { return free_.size(); }
  int32_t num_used() const { return num_blocks() - num_free(); }
  int32_t block_tokens() const { return options_.block_tokens; }
  /// Blocks that hold `num_tokens` tokens.
  int32_t blocks_for(int32_t num_tokens) const {
    return (num_tokens + options_.block_tokens - 1) / options_.block_tokens;
  }

  /// What is wrong with the pool's own books, or nothing. O(num_blocks); for tests.
  std::optional<std::string> check_invariants() const;

 private:
  bool is_free(BlockId block) const { return free_.contains(block); }
  BlockId best_free(BlockId after) const;
  void take(BlockId block);
  void leave_free_list(BlockId block);
  BlockId keep_in_tier(BlockId block);
  int32_t& extent_free(BlockId block) {
    return extent_free_[static_cast<size_t>(block / kExtentBlocks)];
  }
  int32_t extent_size(int32_t extent) const;

  Options options_;
  std::vector<int32_t> refs_;  // [num_blocks]
  IndexList free_;             // blocks without a reference, head = taken next
  PrefixIndex index_;
  std::vector<int32_t> extent_free_;  // [extents] free blocks in each that hold nothing
  IndexList free_extents_;            // extents all of whose blocks are such
  int64_t num_evictions_ = 0;
  BlockPool* tier_ = nullptr;
  BlockId last_kept_ = kNoBlock;  // in the tier: the next one is put behind it
  std::vector<BlockCopy> moved_;
  std::vector<BlockId> kept_;  // in the tier, by fill_tier()
};

}  // namespace quire::kv
