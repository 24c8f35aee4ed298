// BatchPlan: one step as integers: which tokens of which sequences run, where their KV lies, what
// is sampled.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/sched/sampling_spec.h"

namespace quire::sched {

using StepId = int64_t;
using RequestId = int64_t;
/// A stable slot for per-sequence state in the runner, 0 <= RowId < max_num_seqs, held while the
/// sequence runs.
using RowId = int32_t;

/// As an input token: the one that the row samples in the last plan before this one that samples
/// for it. That plan is still in flight, so the runner fills the token in.
inline constexpr int32_t kPlaceholderToken = -1;

/// Guesses at a sequence's next tokens that one step tries at most.
inline constexpr int32_t kMaxDraftTokens = 4;

/// One of a request's n choices.
struct SequenceId {
  RequestId request = 0;
  int32_t choice = 0;
  friend bool operator==(const SequenceId&, const SequenceId&) = default;
  friend auto operator<=>(const SequenceId&, const SequenceId&) = default;
};

/// A sequence that starts (or, after preemption, starts again) to hold a row in this step.
struct RowStart {
  RowId row = 0;
  SequenceId sequence;
  SamplingSpec sampling;
  std::vector<int32_t> prompt;
  std::vector<int32_t> output;  // not empty after a preemption
};

/// One row's share of the step: `num_tokens` consecutive tokens from query_start on. A row that
/// holds a sequence need not run in every step. Its context may have grown since its last step by
/// whole blocks found in the prefix cache, and begins with all that was stored before if the
/// sequence was swapped out. A choice that starts on the last chunk of a prompt
/// shared with choice 0 first runs in a later step, from the position behind the prompt.
struct PlanRow {
  RowId row = 0;
  int32_t query_start = 0;  // index into tokens
  int32_t num_tokens = 0;
  int32_t context_len = 0;  // tokens in the KV once this step's are stored
  int32_t num_draft = 0;    // the last ones of the tokens are guesses; each has its own sample
};

/// What is to be read from one row of logits.
struct LogitsUse {
  enum class Kind : uint8_t { kSample, kPromptLogprob };
  Kind kind = Kind::kSample;
  RowId row = 0;             // whose sampling state; several choices may sample from one logits row
  int32_t logits_index = 0;  // index into logits_rows
  int32_t position = 0;      // of the token that these logits predict
  int32_t target = -1;       // kPromptLogprob: the prompt token at `position`
};

/// One cache group's slots and tables.
struct GroupPlan {
  std::vector<int32_t> slots;        // [T] block * block_tokens + offset
  std::vector<int32_t> block_table;  // [rows][table_width]; -1 behind a row's last block
  int32_t table_width = 0;
};

/// A whole-block operation that must be complete before the step's tokens run. A step's operations
/// take effect in their order: a block may be read by one and then written by a later one. kCopy
/// moves within the KV pool, kSwapOut from a block of the pool to one of the swap space, kSwapIn
/// back; each kind of block is numbered from 0.
struct BlockOp {
  enum class Kind : uint8_t { kCopy, kSwapOut, kSwapIn, kLoad, kStore };
  Kind kind = Kind::kCopy;
  int32_t group = 0;
  int32_t source = 0;
  int32_t destination = 0;
};

/// Crosses from control to data, and between ranks as it is. What a step does not use is empty; a
/// plan to flush the cache has block operations only, and while others are in flight a plan may
/// start rows and move blocks without running anything.
struct BatchPlan {
  StepId step = 0;
  std::vector<RowStart> started;
  std::vector<RowId> finished;  // rows given up since the plan before; applied before `started`
  std::vector<PlanRow> rows;
  std::vector<int32_t> tokens;     // [T] kPlaceholderToken where not known yet
  std::vector<int32_t> positions;  // [T]
  std::vector<GroupPlan> groups;
  std::vector<int32_t> logits_rows;  // [R] distinct indices into tokens, ascending
  std::vector<LogitsUse> uses;       // in the order of rows, then choices
  std::vector<BlockOp> block_ops;
};

/// What the sampler chose for one LogitsUse of kind kSample, in their order; `stop` is set by the
/// engine (end-of-sequence, stop token or stop string matched), before the scheduler commits the
/// step.
struct SampledToken {
  int32_t token = 0;
  bool stop = false;
};

}  // namespace quire::sched
