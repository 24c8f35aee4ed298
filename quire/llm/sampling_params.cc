#include "quire/llm/sampling_params.h"

#include <algorithm>
#include <random>
#include <string_view>

#include <fmt/format.h>

namespace quire::llm {
namespace {

template <typename T>
std::optional<Error> check_range(T value, T low, T high, std::string_view field) {
  if (value >= low && value <= high) return std::nullopt;  // NaN fails
  return invalid(fmt::format("{} must be from {} to {}; got {}.", field, low, high, value),
                 std::string(field));
}

template <typename To, typename From>
void fill(std::optional<To>& value, const std::optional<From>& other) {
  if (!value && other) value = static_cast<To>(*other);
}

uint64_t random_seed() {
  thread_local std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

sched::SamplingSpec spec_of(const SamplingParams& params) {
  sched::SamplingSpec spec;
  spec.temperature = params.temperature.value_or(1.0f);
  spec.top_p = params.top_p.value_or(1.0f);
  spec.top_k = params.top_k.value_or(0);
  spec.min_p = params.min_p.value_or(0.0f);
  spec.repetition_penalty = params.repetition_penalty.value_or(1.0f);
  spec.presence_penalty = params.presence_penalty;
  spec.frequency_penalty = params.frequency_penalty;
  spec.min_tokens = params.min_tokens;
  spec.ignore_eos = params.ignore_eos;
  spec.stop_token_ids = params.stop_token_ids;
  spec.logprobs = params.logprobs.value_or(-1);
  spec.prompt_logprobs = params.prompt_logprobs.value_or(-1);
  spec.logit_bias = params.logit_bias;
  spec.allowed_token_ids = params.allowed_token_ids;
  return spec;
}

}  // namespace

SamplingParams merge_defaults(SamplingParams params,
                              const checkpoint::GenerationDefaults& defaults) {
  fill(params.temperature, defaults.temperature);
  fill(params.top_p, defaults.top_p);
  fill(params.top_k, defaults.top_k);
  fill(params.min_p, defaults.min_p);
  fill(params.repetition_penalty, defaults.repetition_penalty);
  return params;
}

std::optional<Error> validate(const SamplingParams& params) {
  constexpr int32_t kAnyCount = INT32_MAX;
  std::optional<Error> error = check_range(params.n, 1, 128, "n");
  if (!error) error = check_range(params.temperature.value_or(1), 0.0f, 1e6f, "temperature");
  if (!error && params.top_p) {
    // 0 would leave nothing; OpenAI's clients know it as an error.
    error = check_range(*params.top_p, 1e-9f, 1.0f, "top_p");
  }
  if (!error) error = check_range(params.top_k.value_or(0), -1, kAnyCount, "top_k");
  if (!error) error = check_range(params.min_p.value_or(0), 0.0f, 1.0f, "min_p");
  if (!error) {
    error = check_range(params.repetition_penalty.value_or(1), 1e-6f, 1e6f, "repetition_penalty");
  }
  if (!error) error = check_range(params.presence_penalty, -2.0f, 2.0f, "presence_penalty");
  if (!error) error = check_range(params.frequency_penalty, -2.0f, 2.0f, "frequency_penalty");
  if (!error) error = check_range(params.max_tokens.value_or(1), 0, kAnyCount, "max_tokens");
  if (!error) error = check_range(params.min_tokens, 0, kAnyCount, "min_tokens");
  if (!error) error = check_range(params.logprobs.value_or(0), 0, kAnyCount, "logprobs");
  if (!error) {
    error = check_range(params.prompt_logprobs.value_or(0), 0, kAnyCount, "prompt_logprobs");
  }
  if (error) return error;
  if (params.max_tokens && params.min_tokens > *params.max_tokens) {
    return invalid(fmt::format("min_tokens ({}) must not be larger than max_tokens ({}).",
                               params.min_tokens, *params.max_tokens),
                   "min_tokens");
  }
  for (const std::string& stop : params.stop) {
    if (stop.empty()) return invalid("stop must not contain an empty string.", "stop");
  }
  return std::nullopt;
}

Result<engine::EngineRequest> make_request(std::vector<int32_t> prompt,
                                           const SamplingParams& params, int64_t max_model_len,
                                           std::optional<int64_t> default_max_tokens) {
  if (std::optional<Error> error = validate(params)) return *error;
  engine::EngineRequest request;
  request.sampling = spec_of(params);
  const int64_t left = max_model_len - static_cast<int64_t>(prompt.size());
  // Where nothing is left, asking for one token makes the engine say so.
  const int64_t unset = std::max<int64_t>(1, std::min(left, default_max_tokens.value_or(left)));
  request.sampling.max_tokens = params.max_tokens.value_or(static_cast<int32_t>(unset));
  const bool greedy = request.sampling.temperature == 0.0f;
  if (params.seed) {
    request.sampling.seed = static_cast<uint64_t>(*params.seed);
  } else if (!greedy) {
    request.sampling.seed = random_seed();
  }
  request.prompt = std::move(prompt);
  request.n = params.n;
  request.priority = params.priority;
  request.cache_salt = params.cache_salt;
  request.stop = params.stop;
  request.include_stop_str_in_output = params.include_stop_str_in_output;
  request.skip_special_tokens = params.skip_special_tokens;
  return request;
}

}  // namespace quire::llm
