#include "quire/llm/kv_sizing.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/llm/memory_report.h"

namespace quire::llm {
namespace {

int64_t wanted_length(const Options& options, int64_t model_max_len) {
  const int64_t asked = options.max_model_len.value_or(model_max_len);
  if (asked == Options::kLongestThatFits) return model_max_len;
  if (asked < 1 || asked > model_max_len) {
    throw LoadError("--max-model-len", "",
                    fmt::format("1 to {}, the model's own limit", model_max_len),
                    fmt::format("{}", asked));
  }
  return asked;
}

/// Bytes the default pool may take.
int64_t default_budget(const Options& options, const KvDemand& demand) {
  if (demand.available_bytes == 0) return kMaxDefaultKvBytes;
  const auto share = static_cast<int64_t>(options.gpu_memory_utilization *
                                          static_cast<double>(demand.available_bytes));
  if (share < demand.fixed_bytes + demand.block_bytes) {
    throw LoadError(
        "memory", "",
        fmt::format("{} for weights and activations, beside the KV cache",
                    format_bytes(demand.fixed_bytes)),
        fmt::format("{} ({} available, --gpu-memory-utilization {})", format_bytes(share),
                    format_bytes(demand.available_bytes), options.gpu_memory_utilization));
  }
  return std::min(kMaxDefaultKvBytes, share - demand.fixed_bytes);
}

int64_t pool_blocks(const Options& options, const KvDemand& demand, int64_t blocks_per_sequence) {
  if (options.num_gpu_blocks_override) return *options.num_gpu_blocks_override;
  if (options.kv_cache_memory_bytes) return *options.kv_cache_memory_bytes / demand.block_bytes;
  return std::min(int64_t{options.max_num_seqs} * blocks_per_sequence,
                  default_budget(options, demand) / demand.block_bytes);
}

}  // namespace

KvSize size_kv(const Options& options, const KvDemand& demand) {
  if (!(options.gpu_memory_utilization > 0 && options.gpu_memory_utilization <= 1)) {
    throw LoadError("--gpu-memory-utilization", "", "more than 0 and at most 1",
                    fmt::format("{}", options.gpu_memory_utilization));
  }
  const int64_t length = wanted_length(options, demand.model_max_len);
  const int64_t per_sequence = (length + demand.block_tokens - 1) / demand.block_tokens;
  // Slots are 32-bit numbers.
  const int64_t most = std::numeric_limits<int32_t>::max() / demand.block_tokens - 1;
  const int64_t blocks = std::min(most, pool_blocks(options, demand, per_sequence));
  if (blocks >= per_sequence) return {.num_blocks = blocks, .max_model_len = length};
  const int64_t fits = std::max<int64_t>(0, blocks) * demand.block_tokens;
  if (options.max_model_len == Options::kLongestThatFits && fits > 0) {
    return {.num_blocks = blocks, .max_model_len = fits};
  }
  throw LoadError("--max-model-len", "",
                  fmt::format("at most {}, which the KV cache of {} holds (or a larger "
                              "--kv-cache-memory-bytes: {} for {} tokens)",
                              fits, format_bytes(std::max<int64_t>(0, blocks) * demand.block_bytes),
                              per_sequence * demand.block_bytes, length),
                  fmt::format("{}", length));
}

}  // namespace quire::llm
