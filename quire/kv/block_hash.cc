#include "quire/kv/block_hash.h"

#include <array>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quire::kv {
namespace {

BlockHash of(XXH128_hash_t hash) {
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace

BlockHash root_hash(uint64_t seed, const CacheKey& key) {
  const XXH128_hash_t salt = XXH3_128bits_withSeed(key.salt.data(), key.salt.size(), seed);
  const XXH128_hash_t adapter = XXH3_128bits_withSeed(key.adapter.data(), key.adapter.size(), seed);
  const std::array<uint64_t, 5> parts = {salt.low64, salt.high64, adapter.low64, adapter.high64,
                                         key.numbers};
  return of(XXH3_128bits_withSeed(parts.data(), sizeof(parts), seed));
}

BlockHash block_hash(uint64_t seed, const BlockHash& parent, std::span<const int32_t> tokens) {
  // The parent goes in as data beside the tokens' hash, so that nothing is copied together.
  const XXH128_hash_t own = XXH3_128bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
  const std::array<uint64_t, 4> parts = {parent.low, parent.high, own.low64, own.high64};
  return of(XXH3_128bits_withSeed(parts.data(), sizeof(parts), seed));
}

}  // namespace quire::kv
