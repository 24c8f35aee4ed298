// SamplingParams: how a request's tokens are chosen and where it stops, by vLLM's and OpenAI's
// names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quire/base/result.h"
#include "quire/checkpoint/model_config.h"
#include "quire/engine/engine.h"

namespace quire::llm {

/// Unset values come from the model's generation_config.json, else from the neutral defaults noted
/// here.
struct SamplingParams {
  int32_t n = 1;
  std::optional<float> temperature = {};         // 1; 0 = the most likely token
  std::optional<float> top_p = {};               // 1
  std::optional<int32_t> top_k = {};             // 0 or -1 = all
  std::optional<float> min_p = {};               // 0
  std::optional<float> repetition_penalty = {};  // 1; prompt and output tokens
  float presence_penalty = 0;                    // output tokens
  float frequency_penalty = 0;                   // output tokens
  std::optional<int64_t> seed = {};              // unset: a random one for this request
  std::optional<int32_t> max_tokens = {};  // unset: what max_model_len leaves; 0 scores the prompt
  int32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop = {};
  std::vector<int32_t> stop_token_ids = {};
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  std::optional<int32_t> logprobs = {};         // n most likely, beside the chosen token's
  std::optional<int32_t> prompt_logprobs = {};  // the same for prompt tokens
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  std::vector<int32_t> allowed_token_ids = {};
  int32_t priority = 0;         // lower first, under --scheduling-policy priority
  std::string cache_salt = {};  // cached prefixes are shared with requests of the same one only
};

/// Fills what is unset from the model's defaults; max_tokens is left to make_request.
SamplingParams merge_defaults(SamplingParams params,
                              const checkpoint::GenerationDefaults& defaults);

/// Checks every value's range (ids and lengths are the engine's to check); the error names the
/// field.
std::optional<Error> validate(const SamplingParams& params);

/// A checked engine request for `prompt`. Draws a seed where none is given. Without max_tokens it
/// generates what `max_model_len` leaves, `default_max_tokens` at most.
Result<engine::EngineRequest> make_request(std::vector<int32_t> prompt,
                                           const SamplingParams& params, int64_t max_model_len,
                                           std::optional<int64_t> default_max_tokens = {});

}  // namespace quire::llm
