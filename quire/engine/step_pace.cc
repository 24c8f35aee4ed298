#include "quire/engine/step_pace.h"

#include <algorithm>

namespace quire::engine {

/// The value that `rank` of the others precede; equal ones are in the order of their places.
double StepPace::Recent::ranked(int32_t rank) const {
  for (int32_t i = 0; i < size_; ++i) {
    int32_t before = 0;
    for (int32_t j = 0; j < size_; ++j) {
      if (at(j) < at(i) || (at(j) == at(i) && j < i)) ++before;
    }
    if (before == rank) return at(i);
  }
  return 0;
}

void StepPace::observe(int32_t decode_rows, int32_t prompt_tokens, Duration duration) {
  const auto ns = static_cast<double>(duration.count());
  if (prompt_tokens == 0) {
    if (decode_rows > 0) decode_ns_.add(ns);
    return;
  }
  // Fewer tell more about the step than about a token.
  if (prompt_tokens < kMinPromptTokens) return;
  const double decoding = decode_rows == 0 || decode_ns_.empty() ? 0 : decode_ns_.median();
  // What decoding cost may be out of date: a prompt token takes some of the time in any case.
  const double on_prompts = std::max(ns - decoding, ns / 4);
  prompt_token_ns_.add(on_prompts / prompt_tokens);
  prompt_tokens_.add(prompt_tokens);
}

int32_t StepPace::budget(int32_t decode_rows) const {
  if (decode_rows == 0) return options_.max_tokens;
  const double guess = static_cast<double>(options_.first_token_guess.count());
  const double token_ns = prompt_token_ns_.empty() ? guess : prompt_token_ns_.largest_but_one();
  const double decoding = decode_ns_.empty() ? 0 : decode_ns_.median();
  const double time_left = kPlannedShare * static_cast<double>(options_.target.count()) - decoding;
  double prompt_tokens = options_.max_tokens;
  if (token_ns > 0) prompt_tokens = std::min(prompt_tokens, time_left / token_ns);
  if (!prompt_tokens_.empty()) {
    prompt_tokens = std::min(prompt_tokens, 2 * prompt_tokens_.largest());
  }
  const auto share = static_cast<int64_t>(std::max<double>(prompt_tokens, kMinPromptTokens));
  return static_cast<int32_t>(std::min<int64_t>(options_.max_tokens, decode_rows + share));
}

}  // namespace quire::engine
