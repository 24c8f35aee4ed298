// TierIndex: what the blocks of a kept swap space hold, as it is written to a file between runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quire/kv/block_hash.h"

namespace quire::runner {

struct TierEntry {
  int32_t block = 0;  // of the swap space
  kv::BlockHash hash;
  kv::BlockHash parent;
  std::vector<int32_t> tokens;  // [block_tokens]
  uint64_t checksum = 0;        // XXH3 of the block's bytes
};

struct TierIndex {
  std::string key = {};     // all that the blocks' numbers depend on; equal or of no use
  uint64_t cache_seed = 0;  // of the hashes; a secret
  int32_t block_tokens = 0;
  int64_t block_bytes = 0;
  std::vector<TierEntry> entries = {};  // each of another block
};

/// Format, all little-endian: "QUIREKVT", u32 version, u32 length of the key and the key,
/// u64 cache seed, u32 block tokens, u64 block bytes, u32 number of entries; each entry: u32 block,
/// 2 * 2 u64 hash and parent, i32 tokens[block tokens], u64 checksum; last the u64 XXH3 of all
/// that precedes it.
std::string encode_tier_index(const TierIndex& index);

/// Nothing, with the reason in `why`, unless `bytes` are what encode_tier_index() made: every size
/// is checked before it is used, the checksum before anything is.
std::optional<TierIndex> decode_tier_index(std::span<const std::byte> bytes, std::string& why);

/// XXH3 of `bytes`.
uint64_t checksum_of(std::span<const std::byte> bytes);

}  // namespace quire::runner
