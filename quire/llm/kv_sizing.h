// kv_sizing: how many KV blocks an engine gets, and how long its sequences may be.
#pragma once

#include <cstdint>

#include "quire/llm/options.h"

namespace quire::llm {

struct KvDemand {
  int64_t block_bytes = 0;  // one block, all layers and groups
  int64_t block_tokens = 0;
  int64_t model_max_len = 0;    // the model's own limit
  int64_t fixed_bytes = 0;      // weights, arena and the rest
  int64_t available_bytes = 0;  // before any of it is taken; 0 = unknown
};

struct KvSize {
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;
};

/// The default pool's upper bound.
inline constexpr int64_t kMaxDefaultKvBytes = int64_t{4} << 30;

/// num_gpu_blocks_override, else kv_cache_memory_bytes, else what max_num_seqs sequences of
/// max_model_len need, at most gpu_memory_utilization of the available memory less fixed_bytes, and
/// at most 4 GiB. Throws LoadError when max_model_len exceeds the model's own, when the pool does
/// not hold one sequence of it: then with the length that fits; and when pool and fixed_bytes do
/// not fit the available memory: then with what to change.
KvSize size_kv(const Options& options, const KvDemand& demand);

}  // namespace quire::llm
