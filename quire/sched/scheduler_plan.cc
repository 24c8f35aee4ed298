// The planning half of Scheduler: who runs, who is admitted, who must give way.
#include <algorithm>
#include <cstddef>

#include "quire/base/check.h"
#include "quire/sched/scheduler.h"

namespace quire::sched {

const BatchPlan* Scheduler::plan() {
  if (in_flight_) return nullptr;
  budget_ = {.tokens = options_.max_num_batched_tokens, .logits_rows = options_.max_logits_rows};
  outcomes_.clear();
  num_samples_ = 0;
  writer_.begin(next_step_);
  const int64_t preemptions_before = num_preemptions_;
  run_running();
  if (num_preemptions_ == preemptions_before) admit_waiting();
  // The earliest sequence can always run, so an empty step means that none is left.
  QUIRE_CHECK(writer_.empty() == idle());
  if (writer_.empty()) return nullptr;
  ++next_step_;
  in_flight_ = true;
  return &writer_.finish(rows_);
}

void Scheduler::run_running() {
  // run() may insert choices behind the current sequence; they have nothing to compute yet.
  for (size_t i = 0; i < running_.size() && budget_.tokens > 0; ++i) {
    Sequence& sequence = *running_[i];
    const int32_t num_tokens = chunk_tokens(sequence, budget_, options_);
    if (num_tokens == 0) continue;
    if (!make_room(sequence, num_tokens)) return;
    run(sequence, num_tokens);
  }
}

void Scheduler::admit_waiting() {
  while (!waiting_.empty() && budget_.tokens > 0) {
    Sequence& sequence = *waiting_.front();
    const int32_t num_tokens = chunk_tokens(sequence, budget_, options_);
    if (num_tokens == 0 || !may_admit(sequence)) return;
    waiting_.pop_front();
    admit(sequence);
    QUIRE_CHECK(make_room(sequence, num_tokens));
    run(sequence, num_tokens);
  }
}

/// Whether rows and blocks allow to begin `sequence`: all its known tokens must fit beside what the
/// running ones are still to take, so that a prompt is not begun only to be preempted. With nothing
/// running it fits, or add() would have refused it.
bool Scheduler::may_admit(const Sequence& sequence) const {
  const SequenceGroup& group = *sequence.group;
  const int32_t num_rows = group.forked ? 1 : group.n();
  if (rows_.num_available() < num_rows) return false;
  if (running_.empty()) return true;
  // Choices that part each take a block of their own at once.
  const int32_t wanted = pool_.blocks_for(sequence.num_tokens()) + num_rows - 1;
  return wanted + blocks_promised() <= pool_.num_free();
}

/// Blocks that the running sequences need for their known tokens, and one for each to grow into.
int32_t Scheduler::blocks_promised() const {
  int32_t blocks = 0;
  for (const Sequence* sequence : running_) {
    blocks += pool_.blocks_for(sequence->num_tokens()) - sequence->table.size();
    blocks += sequence->group->forked ? 1 : sequence->group->n();
  }
  return blocks;
}

void Scheduler::admit(Sequence& sequence) {
  rows_.reserve(sequence.group->forked ? 1 : sequence.group->n());
  sequence.table = kv::BlockTable(pool_);
  hold_row(sequence);
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
/// first. False if `sequence` itself was the latest and had to go.
bool Scheduler::make_room(Sequence& sequence, int32_t num_tokens) {
  while (blocks_needed(sequence, num_tokens) > pool_.num_free()) {
    Sequence& victim = *running_.back();
    preempt(victim);
    if (&victim == &sequence) return false;
  }
  const int32_t first = sequence.num_computed / pool_.block_tokens();
  if (first < sequence.table.size()) {
    if (const auto copy = sequence.table.make_writable(first)) writer_.copy_block(*copy);
  }
  QUIRE_CHECK(sequence.table.append(blocks_needed(sequence, num_tokens)));
  return true;
}

void Scheduler::preempt(Sequence& victim) {
  running_.pop_back();
  let_go(victim);
  victim.state = SequenceState::kWaiting;
  waiting_.push_front(&victim);
  ++num_preemptions_;
}

void Scheduler::run(Sequence& sequence, int32_t num_tokens) {
  SequenceGroup& group = *sequence.group;
  const PromptLogprobs due = prompt_logprobs_due(sequence, num_tokens);
  budget_.tokens -= num_tokens;
  budget_.logits_rows -= chunk_logits_rows(sequence, num_tokens);
  writer_.run(sequence, num_tokens);
  if (due.size() > 0) {
    writer_.report_prompt_logprobs(sequence, due);
    group.next_prompt_logprob = due.last;
  }
  sequence.num_computed += num_tokens;
  if (sequence.num_uncomputed() > 0) return;

  const bool samples = sequence.samples();
  const size_t before = outcomes_.size();
  outcomes_.push_back({&sequence, samples});
  if (!group.forked) fork_choices(sequence);
  if (!samples) return;
  for (size_t i = before; i < outcomes_.size(); ++i) {
    writer_.sample(*outcomes_[i].sequence);
    ++num_samples_;
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
    choice.table = first.table.fork();
    hold_row(choice);
    outcomes_.push_back({&choice, first.samples()});
  }
}

}  // namespace quire::sched
