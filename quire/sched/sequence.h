// Sequence: one choice of a request on its way: its tokens, how many of them are in the KV cache,
// and where.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "quire/kv/block_hash.h"
#include "quire/kv/block_table.h"
#include "quire/sched/batch_plan.h"
#include "quire/sched/request.h"

namespace quire::sched {

inline constexpr RowId kNoRow = -1;
/// How often a sequence may lose its blocks before it must be begun with room to its end.
inline constexpr int32_t kMaxPreemptions = 3;
struct SequenceGroup;

enum class SequenceState : uint8_t {
  kShared,   // a choice whose prompt is still being computed by choice 0
  kWaiting,  // in the waiting queue: no row, no blocks but perhaps some of the swap space
  kRunning,  // holds a row, and blocks for all computed tokens
  kLeaving,  // cancelled or stopped, but plans in flight use it; ends when they are committed
  kEnded,
};

struct Sequence {
  SequenceId id;
  SequenceGroup* group = nullptr;
  SequenceState state = SequenceState::kShared;
  std::vector<int32_t> tokens;  // prompt, then output
  int32_t num_prompt = 0;
  int32_t num_computed =
      0;                   // leading tokens whose K and V are stored, or will be by a planned step
  int32_t max_tokens = 0;  // `tokens` never grows past this
  kv::BlockTable table;    // blocks for exactly num_computed tokens
  kv::BlockTable swapped;  // while it waits, swapped out: those of the swap space instead
  RowId row = kNoRow;
  int32_t num_pending = 0;  // tokens behind the known ones that plans in flight sample, at most
  StepId last_step = -1;    // the last plan that uses its row and blocks
  /// Guesses at its next tokens, for its next step; num_draft_in_flight of them are being tried.
  std::array<int32_t, kMaxDraftTokens> drafts = {};
  int32_t num_drafts = 0;
  int32_t num_draft_in_flight = 0;
  /// The names of its full blocks in the prefix cache, as far as they were asked for.
  std::vector<kv::BlockHash> hashes;
  int32_t num_published = 0;    // leading blocks of the table that are, or need not be, published
  int32_t num_cached = 0;       // tokens taken from the cache since it last got a row
  int32_t num_preemptions = 0;  // at most kMaxPreemptions under first-come

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_output() const { return num_tokens() - num_prompt; }
  /// Those known and those being sampled.
  int32_t num_planned() const { return num_tokens() + num_pending; }
  /// Tokens that can be run, without drafts. The last one of all that are sampled is never an
  /// input, and while drafts are tried nobody knows which is the next.
  int32_t num_uncomputed() const {
    if (num_draft_in_flight > 0) return 0;
    const bool is_last_pending = num_pending > 0 && num_planned() == max_tokens;
    return num_planned() - num_computed - (is_last_pending ? 1 : 0);
  }
  /// Whether a next token is wanted (not so for a request that only scores its prompt).
  bool samples() const { return num_planned() < max_tokens; }
};

/// The choices of one request. They share one computation of the prompt: choice 0 runs it, and the
/// others start when it ends; from then on each is scheduled alone.
struct SequenceGroup {
  SamplingSpec sampling;
  kv::BlockHash root;  // what the choices' chains of block hashes begin with
  int64_t arrival = 0;
  int32_t priority = 0;
  int32_t num_unended = 0;
  bool forked = false;  // the choices have parted: no row is reserved for them any more
  /// The first prompt position whose log-probability has not been planned: each is reported once,
  /// also where a preemption computes it again.
  int32_t next_prompt_logprob = 1;
  std::vector<Sequence> choices;  // n; never resized, since sequences are pointed to

  int32_t n() const { return static_cast<int32_t>(choices.size()); }
  bool wants_prompt_logprobs() const { return sampling.prompt_logprobs >= 0; }
};

/// Whether `a` goes before `b`: the better (lower) priority first, which is 0 for all under
/// first-come; then in the order of arrival.
inline bool runs_before(const Sequence& a, const Sequence& b) {
  if (a.group->priority != b.group->priority) return a.group->priority < b.group->priority;
  if (a.group->arrival != b.group->arrival) return a.group->arrival < b.group->arrival;
  return a.id.choice < b.id.choice;
}

}  // namespace quire::sched
