// Scheduler: decides, step by step, which tokens of which sequences run and in which KV blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "quire/base/result.h"
#include "quire/kv/block_pool.h"
#include "quire/kv/hash_set.h"
#include "quire/sched/batch_plan.h"
#include "quire/sched/chunk.h"
#include "quire/sched/plan_writer.h"
#include "quire/sched/request.h"
#include "quire/sched/row_pool.h"
#include "quire/sched/scheduler_options.h"
#include "quire/sched/sequence.h"

namespace quire::sched {

enum class FinishReason : uint8_t {
  kNone,
  kStop,    // SampledToken::stop was set
  kLength,  // max_tokens, or the context or the KV cache is full
};

/// What a step brought one sequence.
struct CommitEvent {
  SequenceId sequence;
  int32_t token = -1;  // -1: none; the request has max_tokens 0 and its prompt is done
  FinishReason finish = FinishReason::kNone;
  bool first_token = false;
  /// In choice 0's first event: tokens of its prompt that were taken from the prefix cache.
  int32_t num_cached = 0;
};

/// What the prefix cache was asked for and gave, in tokens, since the start.
struct CacheCounts {
  int64_t queries = 0;  // known tokens of the sequences that got a row and may share
  int64_t hits = 0;
};

/// What went through the swap space since the start.
struct SwapCounts {
  int64_t blocks_out = 0;  // copied
  int64_t blocks_in = 0;
  int64_t preemptions_swapped = 0;
  int64_t preemptions_recomputed = 0;
  int64_t tier_hits = 0;       // tokens of prefix-cache hits that were copied in
  int64_t tier_evictions = 0;  // cached blocks that the swap space lost to others
};

/// A pure function of its events: no clock, no thread, no tensor. Step by step:
/// plan() -> the runner runs it -> commit().
///
/// There is no prefill and no decode phase: in each step every running sequence's computed count
/// catches up with its token count, in the order of arrival, as far as the token budget goes; the
/// chunk that reaches the last token is sampled. Then waiting sequences are admitted while rows,
/// blocks and budget last, unless the step had to preempt.
///
/// When a sequence needs a block and none is free, the last running one is preempted: its blocks
/// are freed, and it returns to its place in the queue to be computed again later. The first is
/// never preempted (add() refuses what does not fit alone), and it runs in every step: so a request
/// ends within as many steps as it and those before it have tokens, prompt and output together,
/// whatever comes behind it. Under first-come "before" is "arrived earlier", and a sequence is
/// preempted at most kMaxPreemptions times: then it is begun only when it can be finished. Under
/// priorities a request waits for all better ones, also those to come.
///
/// With the prefix cache, the full blocks that a step completes are published when it is committed.
/// A sequence at the end of a block takes over what is published of its next ones, but never its
/// last token, which must be computed to be sampled from. If its next block is not published, but
/// is being computed by a sequence planned earlier in the same step, it waits for the next step
/// instead of computing it too. The first sequence never waits, so the bound above still holds.
/// Prompts to be scored are computed whole.
///
/// Several plans may be in flight, so that the runner never waits for the scheduler. The next plan
/// then runs a sequence whose last token is still being sampled with a placeholder for it. When a
/// commit shows that the sequence has stopped, what later plans do for it is dropped; it keeps its
/// row and blocks until they are committed, as a cancelled one does. A sequence in flight is not
/// preempted either: who needs its blocks waits, with all behind it. The first never waits for what
/// others have in flight, so the bound above grows, for each choice, only by the steps that may be
/// in flight when it stops: one less than max_plans_in_flight. Steps without tokens do not count.
///
/// A sequence may try drafts, guesses at its next tokens, behind its last known one in one step;
/// the step's own samples tell how many were right, the rest is forgotten. Tokens are what they are
/// without drafts. With several plans in flight the bound is then multiplied by their number, since
/// the first sequence waits for its drafts while others run.
///
/// With a swap space, a preempted sequence may keep its blocks there and go on where it was, and a
/// cached block that is taken for something else moves there first, to come back on a hit. What the
/// swap space has no room for is computed again or forgotten; no sequence waits for room in it, so
/// that the bounds above hold as they are.
class Scheduler {
 public:
  using Options = SchedulerOptions;

  /// Throws LoadError on impossible options.
  explicit Scheduler(const Options& options);

  /// Queues a request, or says why it could never run. Its id has never been used.
  std::optional<Error> add(Request request);
  /// Ends a request; unknown ids are ignored. Its waiting choices end at once, its running ones too
  /// unless a step is in flight: those keep their blocks until all that are in flight now are
  /// committed, and what was sampled for them is dropped. No event follows.
  void cancel(RequestId request);

  /// The next step, or null: as many as allowed are in flight, there is nothing to run, or not
  /// before the next commit. It stays valid until the first call of plan() after its commit.
  const BatchPlan* plan();
  /// Takes in what was sampled in the earliest step in flight: one token for each kSample use, in
  /// their order. Of a row with drafts, those sampled behind a wrong draft, or behind a stop, are
  /// dropped. The events, one for each token taken in, in that order too, stay valid until the next
  /// call of commit().
  std::span<const CommitEvent> commit(StepId step, std::span<const SampledToken> sampled);

  /// Before the first plan: the swap block's bytes are those of the tokens behind `parent`, as an
  /// earlier scheduler with the same cache_seed told for_each_cached(). Ignored where the swap
  /// space cannot take it in, or the hash is another one.
  void restore_cached(kv::BlockId swap_block, const kv::BlockHash& hash,
                      const kv::BlockHash& parent, std::span<const int32_t> tokens);
  /// Calls fn(swap_block, hash, parent, tokens) for the cached blocks of the swap space that no
  /// sequence holds, the one used longest ago first.
  template <typename Function>
  void for_each_cached(Function&& fn) const {
    if (swap_pool_) swap_pool_->for_each_cached(fn);
  }
  /// When idle: a plan without rows that copies the cached blocks of the pool which the swap space
  /// lacks to it, the last used first, as far as its blocks last. It is committed without samples.
  /// Null if there is nothing to copy.
  const BatchPlan* plan_flush();

  /// Guesses at the next tokens of a running sequence whose last token is known: its next step
  /// tries as many of them as fit, kMaxDraftTokens at most. Ignored for others; they hold until the
  /// sequence gets a token. While they are in flight the sequence is not planned again.
  void set_drafts(SequenceId sequence, std::span<const int32_t> tokens);

  /// From the next step on, at most `tokens` tokens a step, within 1 and the option's value.
  /// Without chunked prefill nothing changes, since a prompt must fit.
  void set_token_budget(int32_t tokens);

  /// Moves the rows given up since the last plan to `out`, for a runner that wants to free their
  /// state when no plan follows; the next plan then does not name them in `finished`.
  void take_finished_rows(std::vector<RowId>& out) { rows_.take_given_up(out); }

  /// Prompts not computed yet, waiting or begun, and sequences to be computed again.
  int32_t num_prompts() const;
  /// Tokens of prompts that the next steps would run, in their order, as far as `work` goes. What a
  /// waiting prompt will find in the cache counts as to be computed.
  int64_t prompt_tokens_within(double work) const;

  bool in_flight() const { return num_in_flight_ > 0; }
  int32_t num_in_flight() const { return num_in_flight_; }
  /// No request is left. (A cancelled or stopped one counts until the plans that use it are
  /// committed.)
  bool idle() const { return num_unended_ == 0; }
  /// Choices that hold a row, or have one reserved while their prompt is computed.
  int32_t num_running() const { return rows_.num_taken(); }
  /// The other choices that have not ended.
  int32_t num_waiting() const { return num_unended_ - num_running(); }
  /// The share of the blocks in use, 0..1.
  double kv_usage() const { return static_cast<double>(pool_.num_used()) / pool_.num_blocks(); }
  int64_t num_preemptions() const { return num_preemptions_; }
  CacheCounts cache_counts() const { return cache_counts_; }
  const kv::BlockPool& pool() const { return pool_; }
  SwapCounts swap_counts() const;
  /// The share of the swap blocks that sequences hold, 0..1; 0 without a swap space.
  double swap_usage() const;
  /// The swap space's blocks, or null.
  const kv::BlockPool* swap_pool() const { return swap_pool_ ? &*swap_pool_ : nullptr; }
  const Options& options() const { return options_; }

  /// The queue, front first; a request not yet begun stands there as its choice 0. For traces.
  std::vector<SequenceId> waiting() const;
  /// What is wrong in the books of scheduler and pool, or nothing. For tests.
  std::optional<std::string> check_invariants() const;

 private:
  /// What a step will bring `sequence`.
  struct Outcome {
    Sequence* sequence = nullptr;
    int32_t num_samples = 0;  // 1, and one for each draft
  };
  /// A sequence that a step computes, and the tokens that are then stored.
  struct Computed {
    Sequence* sequence = nullptr;
    int32_t end = 0;
  };
  /// One that is in flight or being planned.
  struct Step {
    explicit Step(const SchedulerOptions& options);
    PlanWriter writer;
    kv::HashSet claimed;              // blocks that it computes, wholly or in part
    std::vector<Computed> computing;  // in the order of its rows
    std::vector<Outcome> outcomes;    // in the order of its samples
    int32_t num_samples = 0;
  };

  Step& step_of(StepId step) { return steps_[static_cast<size_t>(step) % steps_.size()]; }
  const Step& step_of(StepId step) const {
    return steps_[static_cast<size_t>(step) % steps_.size()];
  }
  StepId oldest_step() const { return next_step_ - num_in_flight_; }
  /// Whether a plan in flight, or the one being made, uses it.
  bool is_in_flight(const Sequence& sequence) const { return sequence.last_step >= oldest_step(); }

  void begin_step();
  const BatchPlan* finish_step();
  const Sequence* first_in_order() const;
  void run_running();
  void admit_waiting();
  bool may_admit(const Sequence& sequence, int32_t blocks_in_use) const;
  int32_t blocks_promised(bool to_the_end) const;
  int32_t blocks_to_the_end(const Sequence& sequence) const;
  void queue(Sequence& sequence);
  void admit(Sequence& sequence);
  int32_t draft_tokens(const Sequence& sequence, int32_t num_tokens) const;
  void run(Sequence& sequence, int32_t num_tokens, int32_t num_draft);
  void fork_choices(Sequence& first);
  bool make_room(Sequence& sequence, int32_t num_tokens);
  int32_t blocks_needed(const Sequence& sequence, int32_t num_tokens) const;
  void preempt(Sequence& victim);

  // The prefix cache; in scheduler_cache.cc.
  /// Leading blocks of a sequence that are published, and how many of those have a holder.
  struct CachedBlocks {
    int32_t found = 0;
    int32_t in_use = 0;
  };
  bool may_share(const Sequence& sequence) const;
  int32_t shareable_blocks(const Sequence& sequence) const;
  CachedBlocks count_cached(Sequence& sequence) const;
  void extend_hashes(Sequence& sequence, int32_t num_blocks) const;
  /// A published block: of the pool or, where that has none, of the swap space.
  struct FoundBlock {
    kv::BlockId block = kv::kNoBlock;
    kv::BlockId swapped = kv::kNoBlock;
    explicit operator bool() const { return block != kv::kNoBlock || swapped != kv::kNoBlock; }
  };
  kv::BlockId find_in(const kv::BlockPool& pool, const Sequence& sequence, int32_t index) const;
  void publish_in(kv::BlockPool& pool, kv::BlockId block, const Sequence& sequence,
                  int32_t index) const;
  FoundBlock find_cached(const Sequence& sequence, int32_t index) const;
  bool waits_for_next(const Sequence& sequence) const;
  void claim(const Sequence& sequence, int32_t num_tokens);
  void adopt_cached(Sequence& sequence);
  void publish_computed(const Step& step);
  void publish_full(Sequence& sequence, int32_t num_stored);

  // The swap space; in scheduler_swap.cc.
  void append_blocks(kv::BlockTable& table, int32_t n);
  void write_moves();
  void write_op(BlockOp::Kind kind, kv::BlockCopy copy);
  kv::BlockId find_swapped(const Sequence& sequence, int32_t index) const;
  int32_t named_blocks(Sequence& sequence) const;
  bool is_better_swapped(Sequence& victim);
  void swap_out(Sequence& victim);
  void swap_in(Sequence& sequence);
  void pin_found();
  void take_found(Sequence& sequence, int32_t num_named);

  void hold_row(Sequence& sequence);
  void let_go(Sequence& sequence);
  void forget_computed(Sequence& sequence);
  void take_in(Sequence& sequence, std::span<const SampledToken> sampled);
  void drop_rejected(Sequence& sequence);
  void end(Sequence& sequence);
  void end_leaving();
  void forget_ended();
  std::optional<std::string> check_pending() const;

  Options options_;
  kv::BlockPool pool_;
  std::optional<kv::BlockPool> swap_pool_;  // the second tier of pool_
  RowPool rows_;
  std::vector<Step> steps_;  // a ring of max_plans_in_flight; a step's place is its id modulo that
  Step* step_ = nullptr;     // being planned
  std::unordered_map<RequestId, std::unique_ptr<SequenceGroup>> groups_;
  std::deque<Sequence*> waiting_;
  const Sequence* first_ = nullptr;  // when the step being planned was begun
  std::vector<Sequence*> running_;   // in the order of runs_before; holds kRunning and kLeaving
  std::vector<CommitEvent> events_;
  std::vector<RequestId> ended_;  // requests to forget
  StepBudget budget_;             // what is left of the step being planned
  int32_t token_budget_ = 0;      // of a step
  CacheCounts cache_counts_;
  SwapCounts swap_counts_;
  std::vector<FoundBlock> found_;  // blocks of one sequence, in their order
  StepId next_step_ = 0;
  int64_t next_arrival_ = 0;
  int64_t num_preemptions_ = 0;
  int32_t num_unended_ = 0;  // choices
  int32_t num_in_flight_ = 0;
  bool waits_for_blocks_ = false;  // someone in the step being planned, for a sequence in flight
};

}  // namespace quire::sched
