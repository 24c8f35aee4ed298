#include "quire/llm/swap_sizing.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "quire/backend/dryrun/step_cost.h"
#include "quire/base/error.h"
#include "quire/llm/memory_report.h"

namespace quire::llm {
namespace {

// Rates that most machines exceed.
constexpr double kMemoryBytesPerNs = 2.0;  // copied: read here, written there
constexpr double kDiskBytesPerNs = 0.5;
constexpr double kOperationsPerNs = 100.0;  // a worker's, in matmuls of many rows
// An operation of attention takes so many times one of a quantized matmul.
constexpr double kAttentionSlowness = 2.0;

void check(const Options& options) {
  if (options.swap_space_bytes.value_or(0) < 0) {
    throw LoadError("--swap-space", "", "0 or more", fmt::format("{}", *options.swap_space_bytes));
  }
  if (!options.swap_dir.empty() && !options.kv_cache_dir.empty()) {
    throw LoadError("--swap-dir", "", "one of --swap-dir and --kv-cache-dir: it is one swap space",
                    "both");
  }
  if (!options.kv_cache_dir.empty() && !options.enable_prefix_caching) {
    throw LoadError("--kv-cache-dir", "", "the prefix cache, whose blocks it keeps",
                    "--no-enable-prefix-caching");
  }
  if (options.swap_space_bytes != 0) return;
  const auto needs = [](const char* option) {
    throw LoadError(option, "", "a --swap-space of more than 0", "0");
  };
  if (options.preemption_mode == "swap") needs("--preemption-mode swap");
  if (!options.kv_cache_dir.empty()) needs("--kv-cache-dir");
  if (!options.swap_dir.empty()) needs("--swap-dir");
}

}  // namespace

SwapSize size_swap(const Options& options, const SwapDemand& demand) {
  check(options);
  const bool in_memory = options.swap_dir.empty() && options.kv_cache_dir.empty();
  const bool bounded = in_memory && demand.available_bytes > 0;
  const auto left = static_cast<int64_t>(options.gpu_memory_utilization *
                                         static_cast<double>(demand.available_bytes)) -
                    demand.other_bytes;
  SwapSize size;
  int64_t bytes = options.swap_space_bytes.value_or(kDefaultSwapBytes);
  if (bounded && bytes > left) {
    if (options.swap_space_bytes) {
      size.notice = fmt::format(
          "--swap-space is {}, but {} of memory will be left when the KV cache is full; "
          "--swap-dir swaps to a disk",
          format_bytes(bytes), format_bytes(std::max<int64_t>(0, left)));
    } else {
      bytes = std::max<int64_t>(0, left);
      size.notice = fmt::format(
          "the swap space is {} instead of {}: more memory is not available; --swap-dir swaps to "
          "a disk",
          format_bytes(bytes), format_bytes(kDefaultSwapBytes));
    }
  }
  // Block numbers are 32 bits wide.
  const int64_t most =
      options.swap_space_bytes ? std::numeric_limits<int32_t>::max() - 1 : kMaxDefaultSwapBlocks;
  size.num_blocks = std::min(most, bytes / demand.block_bytes);
  if (options.swap_space_bytes && bytes > 0 && size.num_blocks == 0) {
    throw LoadError("--swap-space", "",
                    fmt::format("0, or at least a block of {}", format_bytes(demand.block_bytes)),
                    format_bytes(bytes));
  }
  return size;
}

int64_t swap_block_ns(int64_t block_bytes, bool on_disk) {
  return static_cast<int64_t>(static_cast<double>(block_bytes) /
                              (on_disk ? kDiskBytesPerNs : kMemoryBytesPerNs));
}

double attended_share(const backend::Program& program) {
  constexpr int64_t kAttended = 1024;
  const auto operations = [&](int64_t context) {
    const auto cost = backend::dryrun::total_cost(backend::dryrun::step_cost(
        program, {.rows = {{.new_tokens = 1, .context_len = context}}, .num_logits = 0}));
    return static_cast<double>(cost.operations);
  };
  const double attending = (operations(1 + kAttended) - operations(1)) / kAttended;
  return kAttentionSlowness * attending / operations(1);
}

int64_t recompute_token_ns(const backend::Program& program, int num_workers) {
  const int64_t tokens = std::min<int64_t>(256, program.max_tokens);
  const auto cost = backend::dryrun::total_cost(backend::dryrun::step_cost(
      program, {.rows = {{.new_tokens = tokens, .context_len = tokens}}, .num_logits = 1}));
  return static_cast<int64_t>(static_cast<double>(cost.operations) / static_cast<double>(tokens) /
                              (kOperationsPerNs * num_workers));
}

}  // namespace quire::llm
