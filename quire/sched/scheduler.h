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

/// A pure function of its events: no clock, no thread, no tensor. One step at a time:
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
class Scheduler {
 public:
  using Options = SchedulerOptions;

  /// Throws LoadError on impossible options.
  explicit Scheduler(const Options& options);

  /// Queues a request, or says why it could never run. Its id has never been used.
  std::optional<Error> add(Request request);
  /// Ends a request; unknown ids are ignored. Its waiting choices end at once, its running ones too
  /// unless a step is in flight: those keep their blocks until it is committed, and what was
  /// sampled for them is dropped. No event follows.
  void cancel(RequestId request);

  /// The next step, or null: one is in flight, or there is nothing to run. It stays valid until the
  /// next call of plan().
  const BatchPlan* plan();
  /// Takes in what was sampled in the step in flight: one token for each kSample use, in their
  /// order. The events, in that order too, stay valid until the next call of commit().
  std::span<const CommitEvent> commit(StepId step, std::span<const SampledToken> sampled);

  /// From the next step on, at most `tokens` tokens a step, within 1 and the option's value.
  /// Without chunked prefill nothing changes, since a prompt must fit.
  void set_token_budget(int32_t tokens);

  /// Moves the rows given up since the last plan to `out`, for a runner that wants to free their
  /// state when no plan follows; the next plan then does not name them in `finished`.
  void take_finished_rows(std::vector<RowId>& out) { rows_.take_given_up(out); }

  bool in_flight() const { return in_flight_; }
  /// No request is left. (A cancelled one counts until its step is committed.)
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
  const Options& options() const { return options_; }

  /// The queue, front first; a request not yet begun stands there as its choice 0. For traces.
  std::vector<SequenceId> waiting() const;
  /// What is wrong in the books of scheduler and pool, or nothing. For tests.
  std::optional<std::string> check_invariants() const;

 private:
  /// What the step in flight will bring `sequence`.
  struct Outcome {
    Sequence* sequence = nullptr;
    bool sampled = false;
  };

  void run_running();
  void admit_waiting();
  bool may_admit(const Sequence& sequence, int32_t blocks_in_use) const;
  int32_t blocks_promised(bool to_the_end) const;
  int32_t blocks_to_the_end(const Sequence& sequence) const;
  void queue(Sequence& sequence);
  void admit(Sequence& sequence);
  void run(Sequence& sequence, int32_t num_tokens);
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
  kv::BlockId find_cached(const Sequence& sequence, int32_t index) const;
  bool next_is_pending(const Sequence& sequence) const;
  void claim(const Sequence& sequence, int32_t num_tokens);
  void adopt_cached(Sequence& sequence);
  void publish_computed();

  void hold_row(Sequence& sequence);
  void let_go(Sequence& sequence);
  CommitEvent take_in(Sequence& sequence, const SampledToken* sampled);
  void end(Sequence& sequence);
  void end_cancelled();
  void forget_ended();

  Options options_;
  kv::BlockPool pool_;
  RowPool rows_;
  PlanWriter writer_;
  std::unordered_map<RequestId, std::unique_ptr<SequenceGroup>> groups_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;    // in the order of runs_before; holds kRunning and kCancelled
  std::vector<Sequence*> computing_;  // those with tokens in the step in flight
  kv::HashSet pending_;            // blocks that the step being planned computes, wholly or in part
  std::vector<Outcome> outcomes_;  // of the step in flight, in the order of its samples
  std::vector<CommitEvent> events_;
  std::vector<RequestId> ended_;  // requests to forget
  StepBudget budget_;             // what is left of the step being planned
  int32_t token_budget_ = 0;      // of a step
  CacheCounts cache_counts_;
  StepId next_step_ = 0;
  int64_t next_arrival_ = 0;
  int64_t num_preemptions_ = 0;
  int32_t num_unended_ = 0;  // choices
  int32_t num_samples_ = 0;  // of the step in flight
  bool in_flight_ = false;
};

}  // namespace quire::sched
