// SchedulerOptions: the limits a scheduler works under, and which requests can never meet them.
#pragma once

#include <cstdint>
#include <optional>

#include "quire/base/result.h"
#include "quire/sched/prompt_work.h"
#include "quire/sched/request.h"

namespace quire::sched {

/// Who goes first: by arrival alone, or by Request::priority and then by arrival.
enum class SchedulingPolicy : uint8_t { kFcfs, kPriority };

/// What becomes of a preempted sequence's blocks: moved to the swap space and back, or dropped and
/// computed again. kAuto takes what is estimated to cost less.
enum class PreemptionMode : uint8_t { kAuto, kSwap, kRecompute };

struct SchedulerOptions {
  int32_t max_num_batched_tokens = 2048;     // T of a step at most
  int32_t max_num_seqs = 256;                // rows held at most
  int32_t max_model_len = 0;                 // prompt and output of one sequence at most
  int32_t max_logits_rows = 256;             // R of a step at most
  bool enable_chunked_prefill = true;        // off: the token budget never cuts a prompt
  int32_t long_prefill_token_threshold = 0;  // chunk of one sequence at most; 0 = the budget alone
  int32_t block_tokens = 16;
  int32_t num_blocks = 0;
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  bool enable_prefix_caching = false;  // share full blocks of equal prefixes
  uint64_t cache_seed = 0;             // of the block hashes; secret where clients are not trusted
  int32_t hash_bits = 64;              // fewer: for tests, see kv::PrefixIndex
  int32_t num_swap_blocks = 0;         // blocks of the swap space, the second tier; 0 = none
  PreemptionMode preemption_mode = PreemptionMode::kAuto;
  int64_t recompute_token_ns = 0;   // estimated cost of computing a token again
  PromptWork prompt_work = {};      // estimated, for prompt_tokens_within()
  int64_t swap_block_ns = 0;        // estimated cost of copying a block one way
  int32_t max_plans_in_flight = 1;  // plans not yet committed, so that the runner never waits

  /// Tokens whose K and V the whole pool holds.
  int64_t pool_tokens() const { return int64_t{num_blocks} * block_tokens; }
};

/// Throws LoadError if a limit is not positive or a number negative, or if without chunked prefill
/// a prompt could exceed the token budget.
void check_options(const SchedulerOptions& options);

/// Why `request` could not finish even on an empty machine, or nothing. Messages about length name
/// the limit, the prompt's tokens and the requested ones.
std::optional<Error> refuse(const Request& request, const SchedulerOptions& options);

/// Tokens, prompt and output, at which a choice of an accepted `request` ends.
int32_t token_limit(const Request& request, const SchedulerOptions& options);

}  // namespace quire::sched
