// BlockHash: the name of a full block in the prefix cache: a keyed hash of its tokens and of all
// that comes before them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quire::kv {

/// 128 bits of XXH3 under a seed that others do not know.
struct BlockHash {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

/// What, beside the tokens, the numbers in a block depend on, or who may share them.
struct CacheKey {
  std::string_view salt = {};     // requests share blocks with those of their own salt only
  std::string_view adapter = {};  // name of the low-rank adapter
  uint64_t numbers = 0;           // whatever else changes K and V (a RoPE policy); opaque
};

/// The parent of a sequence's first block.
BlockHash root_hash(uint64_t seed, const CacheKey& key);
/// Of the block of `tokens` behind the block (or root) called `parent`.
BlockHash block_hash(uint64_t seed, const BlockHash& parent, std::span<const int32_t> tokens);

}  // namespace quire::kv
