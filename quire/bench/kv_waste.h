// KvWaste: how much of the KV memory that requests hold holds no token, averaged over time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quire/bench/lengths.h"

namespace quire::bench {

struct KvWasteOptions {
  int32_t block_tokens = 16;
  /// Slots in all, whatever the block size; rounded down to whole blocks.
  int32_t pool_tokens = 16384;
  int32_t max_model_len = 2048;
  int32_t max_num_seqs = 256;
  int32_t max_num_batched_tokens = 2048;
};

struct KvWaste {
  int32_t block_tokens = 0;
  int64_t num_steps = 0;
  int64_t num_preemptions = 0;
  int64_t num_requests = 0;  // run to their end
  double allocated = 0;      // slots in blocks that someone holds, summed over the steps
  double filled = 0;         // those of them that hold a token once the step is done
  double mean_running = 0;   // sequences holding blocks, averaged over the steps

  /// 0..1
  double share() const { return allocated > 0 ? 1 - filled / allocated : 0; }
};

/// Runs requests of these lengths, all waiting from the start, through the scheduler and the block
/// pool, without a model; a step is the unit of time. Lengths are cut to max_model_len. Throws
/// LoadError.
KvWaste simulate_kv_waste(std::span<const LengthPair> lengths, const KvWasteOptions& options);

/// The same requests as engines before paging kept them: one contiguous slab of max_model_len slots
/// a sequence, for the longest it could become, as many at once as the pool has slabs.
KvWaste simulate_contiguous(std::span<const LengthPair> lengths, const KvWasteOptions& options);

}  // namespace quire::bench
