// PrefixIndex: which block holds the tokens of which hash, and proof that it does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quire/kv/block_hash.h"

namespace quire::kv {

/// A hash table over the numbers of the blocks themselves: chains run through an array, so that
/// nothing is allocated after construction. A block has at most one hash, a hash at most one block.
class PrefixIndex {
 public:
  struct Options {
    int32_t num_blocks = 0;
    int32_t block_tokens = 16;
    /// Bits of the hash that tell names apart; 64 stands for all 128, fewer are for tests: they
    /// provoke collisions, which must change nothing.
    int32_t hash_bits = 64;
  };

  explicit PrefixIndex(const Options& options);

  /// The block called `hash`, if its tokens and its parent are the ones given; else -1.
  int32_t find(const BlockHash& hash, const BlockHash& parent,
               std::span<const int32_t> tokens) const;
  /// Calls `block`, which has no name yet, `hash`. False, and nothing done, where another block is
  /// called so.
  bool insert(int32_t block, const BlockHash& hash, const BlockHash& parent,
              std::span<const int32_t> tokens);
  /// Takes the block's name away.
  void remove(int32_t block);
  /// Whether a block, whatever it holds, is called `hash`.
  bool knows(const BlockHash& hash) const { return find_name(hash) != kNone; }
  bool contains(int32_t block) const { return entry(block).next != kNone; }
  int32_t size() const { return size_; }
  /// Of a block with a name.
  const BlockHash& hash(int32_t block) const { return entry(block).hash; }
  const BlockHash& parent(int32_t block) const { return entry(block).parent; }
  std::span<const int32_t> tokens(int32_t block) const;

  /// What is wrong with the chains, or nothing. O(num_blocks); for tests.
  std::optional<std::string> check_invariants() const;

 private:
  static constexpr int32_t kNone = -1;  // as `next`: not in the table
  static constexpr int32_t kEnd = -2;   // as `next`: last of its chain
  struct Entry {
    BlockHash hash;
    BlockHash parent;
    int32_t next = kNone;
  };

  const Entry& entry(int32_t block) const { return entries_[static_cast<size_t>(block)]; }
  size_t bucket(const BlockHash& hash) const { return (hash.low & mask_) & (buckets_.size() - 1); }
  int32_t find_name(const BlockHash& hash) const;
  bool same_name(const BlockHash& a, const BlockHash& b) const;

  Options options_;
  uint64_t mask_;
  std::vector<int32_t> buckets_;  // first block of each chain, or kEnd
  std::vector<Entry> entries_;    // by block
  std::vector<int32_t> tokens_;   // [num_blocks][block_tokens]
  int32_t size_ = 0;
};

}  // namespace quire::kv
