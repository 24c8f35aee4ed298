// SamplingSpec: the numbers that say how one sequence's tokens are chosen; text-level options stay
// above.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace quire::sched {

/// Neutral values leave the distribution alone. temperature 0 = the most likely token.
struct SamplingSpec {
  float temperature = 1.0f;
  float top_p = 1.0f;
  int32_t top_k = 0;  // 0 or -1 = all
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;  // prompt and output tokens
  float presence_penalty = 0.0f;    // output tokens only
  float frequency_penalty = 0.0f;   // output tokens only
  uint64_t seed = 0;                // always set: a request without one was given its own
  int32_t max_tokens = 16;          // output tokens at most
  int32_t min_tokens = 0;           // no stop before this many
  bool ignore_eos = false;
  std::vector<int32_t> stop_token_ids = {};  // the model's own stops and the request's
  int32_t logprobs = -1;         // -1 = none; 0 = the chosen token's; n = and the n most likely
  int32_t prompt_logprobs = -1;  // the same for prompt tokens
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  std::vector<int32_t> allowed_token_ids = {};  // empty = all
};

}  // namespace quire::sched
