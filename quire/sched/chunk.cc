#include "quire/sched/chunk.h"

#include <algorithm>

namespace quire::sched {
namespace {

bool reaches_sample(const Sequence& sequence, int32_t num_tokens) {
  return sequence.samples() && num_tokens == sequence.num_uncomputed();
}

}  // namespace

PromptLogprobs prompt_logprobs_due(const Sequence& sequence, int32_t num_tokens) {
  const SequenceGroup& group = *sequence.group;
  if (!group.wants_prompt_logprobs() || sequence.id.choice != 0) return {};
  const int32_t computed = sequence.num_computed;
  return {.first = std::max(computed + 1, group.next_prompt_logprob),
          .last = std::min(computed + num_tokens + 1, sequence.num_prompt)};
}

int32_t chunk_logits_rows(const Sequence& sequence, int32_t num_tokens) {
  return prompt_logprobs_due(sequence, num_tokens).size() +
         (reaches_sample(sequence, num_tokens) ? 1 : 0);
}

int32_t chunk_tokens(const Sequence& sequence, const StepBudget& budget,
                     const SchedulerOptions& options) {
  const int32_t wanted = sequence.num_uncomputed();
  int32_t n = std::min(wanted, budget.tokens);
  if (n == 0) return 0;
  if (!options.enable_chunked_prefill) {
    if (n < wanted) return 0;
  } else if (options.long_prefill_token_threshold > 0) {
    n = std::min(n, options.long_prefill_token_threshold);
  }
  const PromptLogprobs due = prompt_logprobs_due(sequence, n);
  if (due.size() > budget.logits_rows)
    n = due.first + budget.logits_rows - 1 - sequence.num_computed;
  // The token to sample from waits for a step that has a logits row for it.
  if (chunk_logits_rows(sequence, n) > budget.logits_rows) n -= 1;
  return n;
}

}  // namespace quire::sched
