// KvStore: owns the KV cache's memory: one reserved slab per cache group, committed as it is
// touched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/backend/program.h"
#include "quire/base/huge_buffer.h"
#include "quire/base/memory_ledger.h"
#include "quire/runner/swap_space.h"

namespace quire::runner {

class KvStore {
 public:
  struct Options {
    std::vector<backend::CacheGroupSpec> groups = {};
    int64_t num_blocks = 0;           // in each group
    const SwapSpace* swap = nullptr;  // may be null; outlives the use of slabs()
    MemoryLedger* ledger = nullptr;   // may be null
  };
  /// Throws LoadError when the memory cannot be mapped.
  explicit KvStore(const Options& options);

  /// One per group, in their order; valid while the store lives.
  std::span<const backend::KvSlab> slabs() const { return slabs_; }
  /// Bytes reserved in all.
  int64_t bytes() const;
  /// Fills every block with NaN, so that a read of what was never written shows. Commits it all.
  void poison();
  /// The same with one block of a group.
  void poison(size_t group, int64_t block);

  static int64_t bytes_for(std::span<const backend::CacheGroupSpec> groups, int64_t num_blocks);

 private:
  std::vector<backend::CacheGroupSpec> groups_;
  std::vector<HugeBuffer> buffers_;
  std::vector<backend::KvSlab> slabs_;
};

}  // namespace quire::runner
