// KeptTier: a folder in which the swap space's cached blocks outlive the process: its blocks' file,
// and an index that is there only between a clean end and the next start.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quire/kv/block_hash.h"
#include "quire/runner/swap_space.h"
#include "quire/runner/tier_index.h"

namespace quire::runner {

/// Nothing is trusted: the index must fit its checksum, format and key, each block its own
/// checksum. What does not is dropped with a warning. The index is removed as soon as it was read,
/// so that after a crash there is none.
class KeptTier {
 public:
  struct Options {
    std::string folder;
    std::string key;  // all that the blocks' numbers depend on
    int32_t block_tokens = 16;
  };
  /// Where `folder`'s blocks lie: SwapSpace::Options::file.
  static std::string blocks_file(const std::string& folder) { return folder + "/blocks.bin"; }
  static std::string index_file(const std::string& folder) { return folder + "/index.bin"; }
  /// Makes the folder if need be. Throws LoadError when it cannot be.
  static void make_folder(const std::string& folder);

  /// `swap` is mapped from blocks_file() (which locks it) and outlives the tier. Throws LoadError
  /// when an index that is there cannot be removed.
  KeptTier(Options options, const SwapSpace& swap);

  /// What the hashes of the restored blocks were made with; nothing when there are none.
  std::optional<uint64_t> cache_seed() const;
  int64_t num_restored() const { return static_cast<int64_t>(index_.entries.size()); }
  /// Blocks that were named in the index and are not what they should be.
  int64_t num_damaged() const { return num_damaged_; }

  /// Calls fn(block, hash, parent, tokens) for each restored block, and forgets them.
  template <typename Function>
  void restore(Function&& fn) {
    for (const TierEntry& entry : index_.entries) {
      fn(entry.block, entry.hash, entry.parent, std::span<const int32_t>(entry.tokens));
    }
    index_.entries = {};
  }

  /// Notes that a block is to be found again...
  void add(int32_t block, const kv::BlockHash& hash, const kv::BlockHash& parent,
           std::span<const int32_t> tokens);
  /// ...and writes all that were added, blocks first, then the index at once (a new file that takes
  /// the old one's name). The last act: no block is written after it. A failure is logged, and then
  /// there is no index.
  void write(uint64_t cache_seed);

 private:
  std::optional<TierIndex> read_index() const;
  void keep_sound(std::vector<TierEntry> entries);
  void write_index(const std::string& bytes) const;

  Options options_;
  const SwapSpace& swap_;
  TierIndex index_;
  int64_t num_damaged_ = 0;
};

}  // namespace quire::runner
