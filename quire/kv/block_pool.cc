#include "quire/kv/block_pool.h"

#include <algorithm>

#include <fmt/format.h>

#include "quire/base/check.h"

namespace quire::kv {
namespace {

int32_t num_extents(int32_t num_blocks) {
  return (num_blocks + BlockPool::kExtentBlocks - 1) / BlockPool::kExtentBlocks;
}

}  // namespace

BlockPool::BlockPool(Options options)
    : options_(options),
      refs_(static_cast<size_t>(options.num_blocks)),
      free_(options.num_blocks),
      index_({.num_blocks = options.num_blocks,
              .block_tokens = options.block_tokens,
              .hash_bits = options.hash_bits}),
      extent_free_(static_cast<size_t>(num_extents(options.num_blocks))),
      free_extents_(num_extents(options.num_blocks)) {
  QUIRE_CHECK(options.num_blocks > 0 && options.block_tokens > 0);
  for (BlockId block = 0; block < num_blocks(); ++block) free_.push_back(block);
  for (int32_t extent = 0; extent < num_extents(num_blocks()); ++extent) {
    extent_free_[static_cast<size_t>(extent)] = extent_size(extent);
    free_extents_.push_back(extent);
  }
}

int32_t BlockPool::extent_size(int32_t extent) const {
  return std::min(kExtentBlocks, num_blocks() - extent * kExtentBlocks);
}

BlockId BlockPool::best_free(BlockId after) const {
  const BlockId behind = after + 1;
  if (after != kNoBlock && behind < num_blocks() && is_free(behind) && !is_published(behind)) {
    return behind;
  }
  if (!free_extents_.empty()) return free_extents_.front() * kExtentBlocks;
  return free_.front();
}

void BlockPool::leave_free_list(BlockId block) {
  free_.remove(block);
  if (is_published(block)) return;
  const int32_t extent = block / kExtentBlocks;
  if (extent_free(block)-- == extent_size(extent)) free_extents_.remove(extent);
}

void BlockPool::take(BlockId block) {
  leave_free_list(block);
  if (is_published(block)) {
    if (tier_ != nullptr) {
      const BlockId kept = keep_in_tier(block);
      if (kept != kNoBlock) tier_->release(kept);
    }
    index_.remove(block);
    ++num_evictions_;
  }
  refs_[static_cast<size_t>(block)] = 1;
}

void BlockPool::set_tier(BlockPool& tier) {
  QUIRE_CHECK(tier_ == nullptr && num_published() == 0);
  QUIRE_CHECK(tier.block_tokens() == block_tokens());
  tier_ = &tier;
  moved_.reserve(static_cast<size_t>(num_blocks()));
  kept_.reserve(static_cast<size_t>(std::min(num_blocks(), tier.num_blocks())));
}

/// The tier's block, with a reference, that holds the content of the published `block`, which is
/// moved there if need be; kNoBlock where that is impossible.
BlockId BlockPool::keep_in_tier(BlockId block) {
  const BlockHash& hash = index_.hash(block);
  const BlockHash& parent = index_.parent(block);
  const auto tokens = index_.tokens(block);
  const BlockId found = tier_->find(hash, parent, tokens);
  if (found != kNoBlock) {
    tier_->share(found);
    return found;
  }
  if (tier_->index_.knows(hash) || tier_->free_.empty()) return kNoBlock;
  last_kept_ = tier_->best_free(last_kept_);
  tier_->take(last_kept_);
  QUIRE_CHECK(tier_->publish(last_kept_, hash, parent, tokens));
  moved_.push_back({.source = block, .destination = last_kept_});
  return last_kept_;
}

void BlockPool::fill_tier() {
  if (tier_ == nullptr) return;
  // What is kept is held until all is done, so that it is not taken for what comes behind it.
  for (BlockId block = free_.back(); block != free_.end(); block = free_.prev(block)) {
    if (!is_published(block)) break;
    const BlockId kept = keep_in_tier(block);
    if (kept != kNoBlock) kept_.push_back(kept);
  }
  for (; !kept_.empty(); kept_.pop_back()) tier_->release(kept_.back());
}

bool BlockPool::restore(BlockId block, const BlockHash& hash, const BlockHash& parent,
                        std::span<const int32_t> tokens) {
  if (block < 0 || block >= num_blocks() || !is_free(block) || is_published(block)) return false;
  take(block);
  const bool published = publish(block, hash, parent, tokens);
  release(block);
  return published;
}

bool BlockPool::acquire(int32_t n, BlockId after, std::vector<BlockId>& out) {
  if (n > num_free()) return false;
  for (; n > 0; --n) {
    after = best_free(after);
    take(after);
    out.push_back(after);
  }
  return true;
}

void BlockPool::share(BlockId block) {
  QUIRE_CHECK(ref_count(block) > 0 || is_published(block));
  if (ref_count(block) == 0) leave_free_list(block);
  ++refs_[static_cast<size_t>(block)];
}

bool BlockPool::publish(BlockId block, const BlockHash& hash, const BlockHash& parent,
                        std::span<const int32_t> tokens) {
  QUIRE_CHECK(ref_count(block) > 0);
  return index_.insert(block, hash, parent, tokens);
}

void BlockPool::release(BlockId block) {
  QUIRE_CHECK(ref_count(block) > 0);
  if (--refs_[static_cast<size_t>(block)] > 0) return;
  if (is_published(block)) return free_.push_back(block);
  free_.push_front(block);
  const int32_t extent = block / kExtentBlocks;
  if (++extent_free(block) == extent_size(extent)) free_extents_.push_front(extent);
}

std::optional<std::string> BlockPool::check_invariants() const {
  std::vector<int32_t> free_in_extent(extent_free_.size());
  int32_t walked = 0;
  bool cached = false;
  for (BlockId b = free_.front(); b != free_.end(); b = free_.next(b)) {
    if (++walked > num_blocks()) return "the free list is a ring";
    if (ref_count(b) != 0)
      return fmt::format("block {} is free with {} references", b, ref_count(b));
    if (is_published(b)) {
      cached = true;
      continue;
    }
    if (cached) return fmt::format("block {} holds nothing and lies behind a cached one", b);
    ++free_in_extent[static_cast<size_t>(b / kExtentBlocks)];
  }
  if (walked != num_free())
    return fmt::format("{} blocks in a free list of {}", walked, num_free());
  for (BlockId b = 0; b < num_blocks(); ++b) {
    if (is_free(b) != (ref_count(b) == 0)) return fmt::format("block {} is lost", b);
  }
  for (int32_t e = 0; e < num_extents(num_blocks()); ++e) {
    const int32_t counted = free_in_extent[static_cast<size_t>(e)];
    if (counted != extent_free_[static_cast<size_t>(e)] ||
        free_extents_.contains(e) != (counted == extent_size(e))) {
      return fmt::format("extent {} has {} free blocks, booked otherwise", e, counted);
    }
  }
  return index_.check_invariants();
}

}  // namespace quire::kv
