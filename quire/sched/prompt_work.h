// PromptWork: what computing prompt tokens costs, in tokens that attend nothing.
#pragma once

#include <cstdint>

namespace quire::sched {

/// A token behind `context` others costs 1 + attended_share * context.
struct PromptWork {
  double attended_share = 0;

  /// Of `tokens` tokens of one sequence behind `context` others.
  double of(int64_t tokens, int64_t context) const;
  /// How many of `most` tokens behind `context` others cost no more than `work`.
  int64_t tokens_within(double work, int64_t context, int64_t most) const;
};

}  // namespace quire::sched
