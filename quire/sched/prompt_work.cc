#include "quire/sched/prompt_work.h"

#include <algorithm>
#include <cmath>

namespace quire::sched {

double PromptWork::of(int64_t tokens, int64_t context) const {
  const auto n = static_cast<double>(tokens);
  return n + attended_share * (n * static_cast<double>(context) + n * (n - 1) / 2);
}

int64_t PromptWork::tokens_within(double work, int64_t context, int64_t most) const {
  if (work <= 0) return 0;
  // of(n) = half * n^2 + first * n = work, in the form that holds for half = 0 too.
  const double half = attended_share / 2;
  const double first = 1 + attended_share * static_cast<double>(context) - half;
  const double tokens = 2 * work / (first + std::sqrt(first * first + 4 * half * work));
  // Rounding must not lose a token where the work is just enough.
  return std::min(most, static_cast<int64_t>(std::min(tokens + 1e-6, 1e9)));
}

}  // namespace quire::sched
