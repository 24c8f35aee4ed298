// The planning half of Scheduler: who runs, who is admitted, who must give way.
#include <algorithm>
#include <cstddef>

#include "quire/base/check.h"
#include "quire/sched/scheduler.h"

namespace quire::sched {

const BatchPlan* Scheduler::plan() {
  if (num_in_flight_ == options_.max_plans_in_flight) return nullptr;
  begin_step();
  const int64_t preemptions_before = num_preemptions_;
  run_running();
  if (num_preemptions_ == preemptions_before && !waits_for_blocks_) admit_waiting();
  // With nothing in flight the earliest sequence can always run, so that an empty step means that
  // none is left.
  QUIRE_CHECK(num_in_flight_ > 0 || step_->writer.empty() == idle());
  return step_->writer.empty() ? nullptr : finish_step();
}

void Scheduler::begin_step() {
  budget_ = {.tokens = token_budget_, .logits_rows = options_.max_logits_rows};
  step_ = &step_of(next_step_);
  step_->outcomes.clear();
  step_->computing.clear();
  step_->claimed.clear();
  step_->num_samples = 0;
  step_->writer.begin(next_step_);
  waits_for_blocks_ = false;
  first_ = first_in_order();
}

/// The sequence that goes before all others, whether it runs or waits, or null.
const Sequence* Scheduler::first_in_order() const {
  const auto runs = [](const Sequence* s) { return s->state == SequenceState::kRunning; };
  const auto found = std::find_if(running_.begin(), running_.end(), runs);
  const Sequence* running = found == running_.end() ? nullptr : *found;
  const Sequence* waiting = waiting_.empty() ? nullptr : waiting_.front();
  if (running == nullptr || waiting == nullptr) return running == nullptr ? waiting : running;
  return runs_before(*running, *waiting) ? running : waiting;
}

const BatchPlan* Scheduler::finish_step() {
  for (const Outcome& outcome : step_->outcomes) {
    outcome.sequence->num_pending += outcome.num_samples;
    step_->num_samples += outcome.num_samples;
  }
  ++next_step_;
  ++num_in_flight_;
  return &step_->writer.finish(rows_);
}

int32_t Scheduler::num_prompts() const {
  const auto begun = [](const Sequence* s) {
    return s->state == SequenceState::kRunning && s->num_uncomputed() > 1;
  };
  return static_cast<int32_t>(waiting_.size()) +
         static_cast<int32_t>(std::count_if(running_.begin(), running_.end(), begun));
}

int64_t Scheduler::prompt_tokens_within(double work) const {
  const PromptWork& prices = options_.prompt_work;
  int64_t tokens = 0;
  const auto take = [&](const Sequence& sequence) {
    const int32_t left = sequence.num_uncomputed();
    if (left <= 1) return;
    const int64_t taken = prices.tokens_within(work, sequence.num_computed, left);
    work = taken < left ? 0 : work - prices.of(taken, sequence.num_computed);
    tokens += taken;
  };
  for (size_t i = 0; i < running_.size() && work > 0; ++i) {
    if (running_[i]->state == SequenceState::kRunning) take(*running_[i]);
  }
  for (size_t i = 0; i < waiting_.size() && work > 0; ++i) take(*waiting_[i]);
  return tokens;
}

void Scheduler::run_running() {
  // run() may insert choices behind the current sequence; they have nothing to compute yet.
  for (size_t i = 0; i < running_.size() && budget_.tokens > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.state != SequenceState::kRunning) continue;
    adopt_cached(sequence);
    if (waits_for_next(sequence)) continue;
    const int32_t num_tokens = chunk_tokens(sequence, budget_, options_);
    if (num_tokens == 0) continue;
    const int32_t num_draft = draft_tokens(sequence, num_tokens);
    if (!make_room(sequence, num_tokens + num_draft)) return;
    run(sequence, num_tokens, num_draft);
  }
}

void Scheduler::admit_waiting() {
  while (!waiting_.empty() && budget_.tokens > 0) {
    Sequence& sequence = *waiting_.front();
    const auto [num_found, num_in_use] = count_cached(sequence);
    // What it will share counts as computed, to see what is left to run.
    const int32_t num_computed = sequence.num_computed;
    sequence.num_computed = std::max(num_computed, num_found * pool_.block_tokens());
    const bool can_run = waits_for_next(sequence) || chunk_tokens(sequence, budget_, options_) > 0;
    sequence.num_computed = num_computed;
    if (!can_run || !may_admit(sequence, num_in_use)) return;
    waiting_.pop_front();
    admit(sequence);
    if (waits_for_next(sequence)) continue;
    const int32_t num_tokens = chunk_tokens(sequence, budget_, options_);
    if (num_tokens == 0) continue;
    QUIRE_CHECK(make_room(sequence, num_tokens));
    run(sequence, num_tokens, 0);
  }
}

/// Whether rows and blocks allow to begin `sequence`: all its known tokens must fit beside what the
/// running ones are still to take, so that a prompt is not begun only to be preempted. With nothing
/// running it fits, or add() would have refused it. `blocks_in_use` of its blocks are shared with
/// others that run. A sequence that was preempted as often as allowed must fit to its end, beside
/// those before it to theirs.
bool Scheduler::may_admit(const Sequence& sequence, int32_t blocks_in_use) const {
  const SequenceGroup& group = *sequence.group;
  const int32_t num_rows = group.forked ? 1 : group.n();
  if (rows_.num_available() < num_rows) return false;
  if (running_.empty()) return true;
  const bool to_the_end = sequence.num_preemptions >= kMaxPreemptions;
  // Choices that part each take a block of their own at once.
  const int32_t wanted = to_the_end ? blocks_to_the_end(sequence)
                                    : pool_.blocks_for(sequence.num_planned()) + num_rows - 1;
  return wanted - blocks_in_use + blocks_promised(to_the_end) <= pool_.num_free();
}

/// Blocks that the running sequences need for their known tokens, and one for each to grow into; or
/// all that they can come to need.
int32_t Scheduler::blocks_promised(bool to_the_end) const {
  int32_t blocks = 0;
  for (const Sequence* sequence : running_) {
    if (sequence->state == SequenceState::kLeaving) continue;
    const int32_t num_rows = sequence->group->forked ? 1 : sequence->group->n();
    const int32_t wanted = to_the_end ? blocks_to_the_end(*sequence)
                                      : pool_.blocks_for(sequence->num_planned()) + num_rows;
    blocks += std::max(wanted - sequence->table.size(), 0);
  }
  return blocks;
}

/// All blocks that the sequence, with the choices that are to part from it, can come to hold alone:
/// where there are choices, one more each for the copy of a shared one.
int32_t Scheduler::blocks_to_the_end(const Sequence& sequence) const {
  const SequenceGroup& group = *sequence.group;
  const int32_t stored = std::max(sequence.num_tokens(), sequence.max_tokens - 1);
  const int32_t each = pool_.blocks_for(stored) + (group.n() > 1 ? 1 : 0);
  return group.forked ? each : each * group.n();
}

void Scheduler::admit(Sequence& sequence) {
  rows_.reserve(sequence.group->forked ? 1 : sequence.group->n());
  sequence.table = kv::BlockTable(pool_);
  hold_row(sequence);
  if (options_.enable_prefix_caching) extend_hashes(sequence, shareable_blocks(sequence));
  if (may_share(sequence)) cache_counts_.queries += sequence.num_uncomputed();
  if (sequence.swapped.size() > 0) swap_in(sequence);
  adopt_cached(sequence);
}

/// Blocks to acquire before the next `num_tokens` tokens of `sequence` can be written. Only the
/// block that its first one falls into can have another holder.
int32_t Scheduler::blocks_needed(const Sequence& sequence, int32_t num_tokens) const {
  const kv::BlockTable& table = sequence.table;
  const int32_t first = sequence.num_computed / pool_.block_tokens();
  const bool copies = first < table.size() && table.is_shared(first);
  return pool_.blocks_for(sequence.num_computed + num_tokens) - table.size() + (copies ? 1 : 0);
}

/// Gives `sequence` the blocks for its next tokens, preempting others that run after it, the latest
/// first. False if `sequence` itself was the latest and had to go; or if the latest is used by
/// plans in flight: then nobody from `sequence` on runs until it can go.
bool Scheduler::make_room(Sequence& sequence, int32_t num_tokens) {
  while (blocks_needed(sequence, num_tokens) > pool_.num_free()) {
    Sequence& victim = *running_.back();
    if (is_in_flight(victim)) {
      waits_for_blocks_ = true;
      return false;
    }
    preempt(victim);
    if (&victim == &sequence) return false;
  }
  const int32_t first = sequence.num_computed / pool_.block_tokens();
  if (first < sequence.table.size()) {
    if (const auto copy = sequence.table.make_writable(first)) {
      write_moves();
      write_op(BlockOp::Kind::kCopy, *copy);
    }
  }
  append_blocks(sequence.table, blocks_needed(sequence, num_tokens));
  return true;
}

void Scheduler::preempt(Sequence& victim) {
  QUIRE_CHECK(victim.state == SequenceState::kRunning && victim.num_pending == 0);
  running_.pop_back();
  const bool swaps = is_better_swapped(victim);
  if (swaps) swap_out(victim);
  ++(swaps ? swap_counts_.preemptions_swapped : swap_counts_.preemptions_recomputed);
  let_go(victim);
  if (!swaps) forget_computed(victim);
  victim.state = SequenceState::kWaiting;
  queue(victim);
  ++victim.num_preemptions;
  ++num_preemptions_;
}

/// How many of its drafts the sequence tries behind its next `num_tokens` tokens: as many as the
/// budget, the blocks that are free and the tokens it still wants allow.
int32_t Scheduler::draft_tokens(const Sequence& sequence, int32_t num_tokens) const {
  if (sequence.num_drafts == 0 || sequence.num_pending > 0) return 0;
  if (num_tokens != 1 || sequence.num_uncomputed() != 1) return 0;
  const int32_t longest = options_.long_prefill_token_threshold;
  int32_t n = std::min({sequence.num_drafts, budget_.tokens - 1, budget_.logits_rows - 1,
                        sequence.max_tokens - sequence.num_tokens() - 1});
  if (longest > 0) n = std::min(n, longest - 1);
  while (n > 0 && blocks_needed(sequence, 1 + n) > pool_.num_free()) --n;
  return std::max(n, 0);
}

/// Plans the sequence's next `num_tokens` tokens and behind them `num_draft` drafts.
void Scheduler::run(Sequence& sequence, int32_t num_tokens, int32_t num_draft) {
  SequenceGroup& group = *sequence.group;
  const PromptLogprobs due = prompt_logprobs_due(sequence, num_tokens);
  const bool samples = sequence.samples() && num_tokens == sequence.num_uncomputed();
  budget_.tokens -= num_tokens + num_draft;
  budget_.logits_rows -= chunk_logits_rows(sequence, num_tokens) + num_draft;
  step_->writer.run(sequence, num_tokens, num_draft);
  step_->computing.push_back({&sequence, sequence.num_computed + num_tokens});
  sequence.last_step = next_step_;
  claim(sequence, num_tokens);
  if (due.size() > 0) {
    step_->writer.report_prompt_logprobs(sequence, due);
    group.next_prompt_logprob = due.last;
  }
  sequence.num_computed += num_tokens;
  if (sequence.num_uncomputed() > 0) return;

  sequence.num_computed += num_draft;
  sequence.num_draft_in_flight = num_draft;
  std::vector<Outcome>& outcomes = step_->outcomes;
  const size_t before = outcomes.size();
  outcomes.push_back({&sequence, samples ? 1 + num_draft : 0});
  if (!group.forked) fork_choices(sequence);
  for (size_t i = before; i < outcomes.size(); ++i) {
    step_->writer.sample(*outcomes[i].sequence, outcomes[i].num_samples);
  }
}

/// The prompt is computed with this step: the other choices share its blocks and, in this step, the
/// logits of its last token.
void Scheduler::fork_choices(Sequence& first) {
  SequenceGroup& group = *first.group;
  group.forked = true;
  for (Sequence& choice : group.choices) {
    if (&choice == &first) continue;
    choice.tokens.reserve(static_cast<size_t>(choice.max_tokens));
    choice.tokens = first.tokens;
    choice.num_computed = first.num_computed;
    choice.hashes.assign(first.hashes.begin(), first.hashes.end());
    choice.num_published = first.num_computed / pool_.block_tokens();  // choice 0 does it
    choice.table = first.table.fork();
    hold_row(choice);
    step_->outcomes.push_back({&choice, first.samples() ? 1 : 0});
  }
}

}  // namespace quire::sched
