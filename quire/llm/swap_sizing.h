// swap_sizing: how many blocks the swap space gets, and what moving a block or computing a token
// again is taken to cost.
#pragma once

#include <cstdint>
#include <string>

#include "quire/backend/program.h"
#include "quire/llm/options.h"

namespace quire::llm {

struct SwapDemand {
  int64_t block_bytes = 0;      // one block, all layers and groups
  int64_t other_bytes = 0;      // weights, KV pool and the rest
  int64_t available_bytes = 0;  // before any of it is taken; 0 = unknown
};

struct SwapSize {
  int64_t num_blocks = 0;
  std::string notice = {};  // for the log: why it is less than one may expect, or more than is wise
};

inline constexpr int64_t kDefaultSwapBytes = int64_t{4} << 30;
/// What the default is bounded by beside its bytes: a block takes some memory in the books, too.
inline constexpr int64_t kMaxDefaultSwapBlocks = int64_t{1} << 16;

/// Throws LoadError on options that contradict each other.
SwapSize size_swap(const Options& options, const SwapDemand& demand);

/// Estimates that preemption weighs against each other. They are the same on every machine with as
/// many workers: a choice that followed measurements would differ from run to run.
int64_t swap_block_ns(int64_t block_bytes, bool on_disk);
int64_t recompute_token_ns(const backend::Program& program, int num_workers);
/// What attending one more token costs, as a share of computing a token that attends only itself.
double attended_share(const backend::Program& program);

}  // namespace quire::llm
