#include "quire/sched/scheduler.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "quire/base/check.h"

namespace quire::sched {

namespace {

/// Blocks that a step may claim: a row's chunk claims its whole blocks and one begun at either end.
size_t most_claims(const SchedulerOptions& options) {
  if (!options.enable_prefix_caching) return 0;
  const int32_t rows = std::min(options.max_num_seqs, options.max_num_batched_tokens);
  return static_cast<size_t>(options.max_num_batched_tokens / options.block_tokens) +
         2 * static_cast<size_t>(rows);
}

}  // namespace

Scheduler::Step::Step(const SchedulerOptions& options)
    : writer(options), claimed(most_claims(options)) {
  computing.reserve(static_cast<size_t>(options.max_num_seqs));
  outcomes.reserve(static_cast<size_t>(options.max_num_seqs));
}

Scheduler::Scheduler(const Options& options)
    : options_((check_options(options), options)),
      pool_({.num_blocks = options.num_blocks,
             .block_tokens = options.block_tokens,
             .hash_bits = options.hash_bits}),
      rows_(options.max_num_seqs),
      token_budget_(options.max_num_batched_tokens) {
  const auto rows = static_cast<size_t>(options.max_num_seqs);
  steps_.reserve(static_cast<size_t>(options.max_plans_in_flight));
  for (int32_t i = 0; i < options.max_plans_in_flight; ++i) steps_.emplace_back(options);
  running_.reserve(rows);
  events_.reserve(rows * (1 + kMaxDraftTokens));
  ended_.reserve(rows);
  found_.reserve(
      static_cast<size_t>(std::min(pool_.blocks_for(options.max_model_len), options.num_blocks)));
  if (options.num_swap_blocks > 0) {
    swap_pool_.emplace(kv::BlockPool::Options{.num_blocks = options.num_swap_blocks,
                                              .block_tokens = options.block_tokens,
                                              .hash_bits = options.hash_bits});
    pool_.set_tier(*swap_pool_);
  }
}

std::optional<Error> Scheduler::add(Request request) {
  if (auto error = refuse(request, options_)) return error;
  auto group = std::make_unique<SequenceGroup>();
  group->arrival = next_arrival_++;
  if (options_.policy == SchedulingPolicy::kPriority) group->priority = request.priority;
  group->root = kv::root_hash(
      options_.cache_seed,
      {.salt = request.cache_salt, .adapter = request.adapter, .numbers = request.numbers_key});
  group->num_unended = request.n;
  group->forked = request.n == 1;
  group->choices.resize(static_cast<size_t>(request.n));
  for (int32_t choice = 0; choice < request.n; ++choice) {
    Sequence& sequence = group->choices[static_cast<size_t>(choice)];
    sequence.id = {.request = request.id, .choice = choice};
    sequence.group = group.get();
    sequence.num_prompt = static_cast<int32_t>(request.prompt.size());
    sequence.max_tokens = token_limit(request, options_);
  }
  Sequence& first = group->choices.front();
  first.tokens = std::move(request.prompt);
  first.state = SequenceState::kWaiting;
  group->sampling = std::move(request.sampling);
  num_unended_ += request.n;
  queue(first);
  QUIRE_CHECK(groups_.emplace(request.id, std::move(group)).second);
  return std::nullopt;
}

void Scheduler::set_token_budget(int32_t tokens) {
  if (!options_.enable_chunked_prefill) return;
  token_budget_ = std::clamp(tokens, 1, options_.max_num_batched_tokens);
}

/// Puts the sequence in its place in the queue, which is mostly one of its ends.
void Scheduler::queue(Sequence& sequence) {
  const auto before = [](const Sequence* a, const Sequence* b) { return runs_before(*a, *b); };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), &sequence, before), &sequence);
}

void Scheduler::cancel(RequestId request) {
  const auto found = groups_.find(request);
  if (found == groups_.end()) return;
  for (Sequence& sequence : found->second->choices) {
    switch (sequence.state) {
      case SequenceState::kWaiting:
        std::erase(waiting_, &sequence);
        end(sequence);
        break;
      case SequenceState::kShared:
        end(sequence);
        break;
      case SequenceState::kRunning:
        sequence.state = SequenceState::kLeaving;
        sequence.last_step = next_step_ - 1;
        break;
      case SequenceState::kLeaving:
      case SequenceState::kEnded:
        break;
    }
  }
  end_leaving();
  forget_ended();
}

std::span<const CommitEvent> Scheduler::commit(StepId step, std::span<const SampledToken> sampled) {
  QUIRE_CHECK(num_in_flight_ > 0 && step == oldest_step());
  const Step& done = step_of(step);
  QUIRE_CHECK(static_cast<int32_t>(sampled.size()) == done.num_samples);
  --num_in_flight_;
  events_.clear();
  publish_computed(done);
  size_t next = 0;
  for (const Outcome& outcome : done.outcomes) {
    const auto tokens = sampled.subspan(next, static_cast<size_t>(outcome.num_samples));
    next += tokens.size();
    if (outcome.sequence->state == SequenceState::kLeaving) continue;
    take_in(*outcome.sequence, tokens);
  }
  end_leaving();
  forget_ended();
  return events_;
}

void Scheduler::set_drafts(SequenceId id, std::span<const int32_t> tokens) {
  const auto found = groups_.find(id.request);
  if (found == groups_.end() || id.choice < 0 || id.choice >= found->second->n()) return;
  Sequence& sequence = found->second->choices[static_cast<size_t>(id.choice)];
  const bool is_known = sequence.num_pending == 0 && sequence.num_output() > 0;
  if (sequence.state != SequenceState::kRunning || !is_known) return;
  sequence.num_drafts = std::min(static_cast<int32_t>(tokens.size()), kMaxDraftTokens);
  std::copy_n(tokens.begin(), sequence.num_drafts, sequence.drafts.begin());
}

/// Takes in what a step sampled for the sequence: the first token, and each further one as long as
/// the draft that it was sampled behind is the token sampled before it. Without samples, a prompt
/// is complete from which none are wanted.
void Scheduler::take_in(Sequence& sequence, std::span<const SampledToken> sampled) {
  CommitEvent event{.sequence = sequence.id};
  if (sequence.id.choice == 0 && sequence.num_output() == 0) {
    event.num_cached = sequence.num_cached;
  }
  sequence.num_pending -= static_cast<int32_t>(sampled.size());
  for (size_t i = 0; i < std::max(sampled.size(), size_t{1}); ++i) {
    if (i > 0 && sequence.drafts[i - 1] != event.token) break;
    if (!sampled.empty()) {
      sequence.tokens.push_back(sampled[i].token);
      event.token = sampled[i].token;
      event.first_token = sequence.num_output() == 1;
      if (sampled[i].stop) event.finish = FinishReason::kStop;
    }
    if (event.finish == FinishReason::kNone && sequence.num_tokens() == sequence.max_tokens) {
      event.finish = FinishReason::kLength;
    }
    events_.push_back(event);
    if (event.finish != FinishReason::kNone) break;
  }
  if (sequence.num_draft_in_flight > 0) drop_rejected(sequence);
  if (!sampled.empty()) sequence.num_drafts = 0;
  if (event.finish == FinishReason::kNone) return;
  if (is_in_flight(sequence)) {
    sequence.state = SequenceState::kLeaving;
  } else {
    end(sequence);
  }
}

/// Of the drafts that were tried, what is no token of the sequence is not stored either.
void Scheduler::drop_rejected(Sequence& sequence) {
  sequence.num_draft_in_flight = 0;
  sequence.num_computed = sequence.num_tokens() - 1;
  sequence.table.truncate(pool_.blocks_for(sequence.num_computed));
  publish_full(sequence, sequence.num_computed);
}

/// The sequence begins to hold a row that was reserved for it.
void Scheduler::hold_row(Sequence& sequence) {
  sequence.row = rows_.take();
  sequence.state = SequenceState::kRunning;
  sequence.last_step = next_step_;
  sequence.tokens.reserve(static_cast<size_t>(sequence.max_tokens));
  sequence.table.reserve(pool_.blocks_for(sequence.max_tokens));
  if (options_.enable_prefix_caching) {
    sequence.hashes.reserve(static_cast<size_t>(pool_.blocks_for(sequence.max_tokens)));
  }
  running_.insert(
      std::upper_bound(running_.begin(), running_.end(), &sequence,
                       [](const Sequence* a, const Sequence* b) { return runs_before(*a, *b); }),
      &sequence);
  step_->writer.start(sequence);
}

/// The sequence gives its row and blocks back, and those set aside for its other choices.
void Scheduler::let_go(Sequence& sequence) {
  sequence.table.clear();
  sequence.num_drafts = 0;
  rows_.give_up(std::exchange(sequence.row, kNoRow));
  if (!sequence.group->forked) rows_.unreserve(sequence.group->n() - 1);
}

/// Nothing of the sequence is stored any more.
void Scheduler::forget_computed(Sequence& sequence) {
  sequence.swapped.clear();
  sequence.num_computed = 0;
  sequence.num_published = 0;
  sequence.num_cached = 0;
}

void Scheduler::end(Sequence& sequence) {
  if (sequence.row != kNoRow) let_go(sequence);
  forget_computed(sequence);
  sequence.state = SequenceState::kEnded;
  --num_unended_;
  if (--sequence.group->num_unended == 0) ended_.push_back(sequence.id.request);
}

/// Ends what leaves and is not in flight any more, and drops all that ended from the running list.
void Scheduler::end_leaving() {
  for (Sequence* sequence : running_) {
    if (sequence->state == SequenceState::kLeaving && !is_in_flight(*sequence)) end(*sequence);
  }
  std::erase_if(running_, [](const Sequence* s) { return s->state == SequenceState::kEnded; });
}

void Scheduler::forget_ended() {
  for (const RequestId request : ended_) groups_.erase(request);
  ended_.clear();
}

std::vector<SequenceId> Scheduler::waiting() const {
  std::vector<SequenceId> ids;
  ids.reserve(waiting_.size());
  for (const Sequence* sequence : waiting_) ids.push_back(sequence->id);
  return ids;
}

}  // namespace quire::sched
