// How much of one sequence a step runs: what is left of the step's budgets decides.
#pragma once

#include <cstdint>

#include "quire/sched/scheduler_options.h"
#include "quire/sched/sequence.h"

namespace quire::sched {

/// What a step may still take in.
struct StepBudget {
  int32_t tokens = 0;
  int32_t logits_rows = 0;
};

/// The prompt positions whose log-probabilities a chunk yields: [first, last). Position p is read
/// from the logits of p - 1.
struct PromptLogprobs {
  int32_t first = 0;
  int32_t last = 0;
  int32_t size() const { return last > first ? last - first : 0; }
};

/// Those due from the next `num_tokens` uncomputed tokens of `sequence`.
PromptLogprobs prompt_logprobs_due(const Sequence& sequence, int32_t num_tokens);

/// How many of the sequence's uncomputed tokens to run, 0 if none can: at most the budget's tokens,
/// and so few that the logits they yield fit. A chunk that reaches the last token takes one logits
/// row for sampling, whatever the number of choices.
int32_t chunk_tokens(const Sequence& sequence, const StepBudget& budget,
                     const SchedulerOptions& options);

/// Logits rows that the chunk takes.
int32_t chunk_logits_rows(const Sequence& sequence, int32_t num_tokens);

}  // namespace quire::sched
