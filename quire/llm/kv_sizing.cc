#include "quire/llm/kv_sizing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

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

/// What a user can do so that less memory is needed beside the KV cache.
std::string ways_to_shrink(const Options& options) {
  return fmt::format(
      "lower --max-num-batched-tokens ({}) or --max-num-seqs ({}), or take a smaller or a "
      "quantized "
      "model",
      options.max_num_batched_tokens, options.max_num_seqs);
}

[[noreturn]] void refuse_share(const Options& options, const KvDemand& demand, int64_t share) {
  const double needed = static_cast<double>(demand.fixed_bytes + demand.block_bytes) /
                        static_cast<double>(demand.available_bytes);
  // Rounded up, so that what is advised does fit.
  const double advised = std::ceil(needed * 100) / 100;
  const std::string raise =
      advised <= 1 ? fmt::format("raise --gpu-memory-utilization to {:.2f} or more, ", advised)
                   : std::string("free some memory, ");
  throw LoadError("memory",
                  fmt::format("{} are needed for weights and activations, beside the KV cache, but "
                              "--gpu-memory-utilization {} of the {} available are {}; {}{}",
                              format_bytes(demand.fixed_bytes), options.gpu_memory_utilization,
                              format_bytes(demand.available_bytes), format_bytes(share), raise,
                              ways_to_shrink(options)));
}

/// A pool of a size that was asked for must lie in memory that is there.
void check_asked_pool(const Options& options, const KvDemand& demand, int64_t blocks) {
  const int64_t pool = blocks * demand.block_bytes;
  if (demand.available_bytes == 0 || demand.fixed_bytes + pool <= demand.available_bytes) return;
  const int64_t fits =
      std::max<int64_t>(0, demand.available_bytes - demand.fixed_bytes) / demand.block_bytes;
  const std::string needs = fmt::format(
      "{} are needed ({} of KV cache, {} for weights and activations), and {} are available; ",
      format_bytes(demand.fixed_bytes + pool), format_bytes(pool), format_bytes(demand.fixed_bytes),
      format_bytes(demand.available_bytes));
  if (fits == 0) throw LoadError("memory", needs + ways_to_shrink(options));
  if (options.num_gpu_blocks_override) {
    throw LoadError("--num-gpu-blocks-override",
                    needs + fmt::format("at most {} blocks fit", fits));
  }
  throw LoadError("--kv-cache-memory-bytes",
                  needs + fmt::format("at most {} bytes fit", fits * demand.block_bytes));
}

/// Bytes the default pool may take.
int64_t default_budget(const Options& options, const KvDemand& demand) {
  if (demand.available_bytes == 0) return kMaxDefaultKvBytes;
  const auto share = static_cast<int64_t>(options.gpu_memory_utilization *
                                          static_cast<double>(demand.available_bytes));
  if (share < demand.fixed_bytes + demand.block_bytes) refuse_share(options, demand, share);
  return std::min(kMaxDefaultKvBytes, share - demand.fixed_bytes);
}

int64_t pool_blocks(const Options& options, const KvDemand& demand, int64_t blocks_per_sequence) {
  const bool asked = options.num_gpu_blocks_override || options.kv_cache_memory_bytes;
  if (asked) {
    const int64_t blocks = options.num_gpu_blocks_override
                               ? *options.num_gpu_blocks_override
                               : *options.kv_cache_memory_bytes / demand.block_bytes;
    check_asked_pool(options, demand, blocks);
    return blocks;
  }
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
