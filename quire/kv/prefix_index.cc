#include "quire/kv/prefix_index.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include <fmt/format.h>

#include "quire/base/check.h"

namespace quire::kv {

PrefixIndex::PrefixIndex(const Options& options)
    : options_(options),
      mask_(options.hash_bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << options.hash_bits) - 1),
      buckets_(std::bit_ceil(static_cast<size_t>(options.num_blocks)), kEnd),
      entries_(static_cast<size_t>(options.num_blocks)),
      tokens_(static_cast<size_t>(options.num_blocks) * static_cast<size_t>(options.block_tokens)) {
}

/// All 128 bits, unless a test looks for collisions.
bool PrefixIndex::same_name(const BlockHash& a, const BlockHash& b) const {
  if (options_.hash_bits < 64) return ((a.low ^ b.low) & mask_) == 0;
  return a == b;
}

int32_t PrefixIndex::find_name(const BlockHash& hash) const {
  for (int32_t block = buckets_[bucket(hash)]; block != kEnd; block = entry(block).next) {
    if (same_name(entry(block).hash, hash)) return block;
  }
  return kNone;
}

int32_t PrefixIndex::find(const BlockHash& hash, const BlockHash& parent,
                          std::span<const int32_t> tokens) const {
  const int32_t block = find_name(hash);
  if (block == kNone || !(entry(block).parent == parent)) return kNone;
  return std::ranges::equal(this->tokens(block), tokens) ? block : kNone;
}

bool PrefixIndex::insert(int32_t block, const BlockHash& hash, const BlockHash& parent,
                         std::span<const int32_t> tokens) {
  QUIRE_CHECK(!contains(block) && static_cast<int32_t>(tokens.size()) == options_.block_tokens);
  if (find_name(hash) != kNone) return false;
  int32_t& first = buckets_[bucket(hash)];
  entries_[static_cast<size_t>(block)] = {.hash = hash, .parent = parent, .next = first};
  first = block;
  std::ranges::copy(tokens, tokens_.begin() + ptrdiff_t{block} * options_.block_tokens);
  ++size_;
  return true;
}

void PrefixIndex::remove(int32_t block) {
  QUIRE_CHECK(contains(block));
  int32_t* link = &buckets_[bucket(entry(block).hash)];
  while (*link != block) link = &entries_[static_cast<size_t>(*link)].next;
  *link = entry(block).next;
  entries_[static_cast<size_t>(block)] = {};
  --size_;
}

std::span<const int32_t> PrefixIndex::tokens(int32_t block) const {
  const auto count = static_cast<size_t>(options_.block_tokens);
  return std::span(tokens_).subspan(static_cast<size_t>(block) * count, count);
}

std::optional<std::string> PrefixIndex::check_invariants() const {
  int32_t named = 0;
  for (int32_t block = 0; block < options_.num_blocks; ++block) {
    if (!contains(block)) continue;
    ++named;
    if (find_name(entry(block).hash) != block) {
      return fmt::format("block {} is not found under its hash", block);
    }
  }
  if (named != size_) return fmt::format("{} blocks have a hash, {} booked", named, size_);
  return std::nullopt;
}

}  // namespace quire::kv
