#include "quire/engine/request_check.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace quire::engine {
namespace {

constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 4096;  // each
constexpr size_t kMaxSaltBytes = 4096;

std::optional<Error> check_ids(const std::vector<int32_t>& ids, int64_t vocab_size,
                               std::string_view field) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return invalid(fmt::format("{}: token id {} is outside the vocabulary (0 to {}).", field, id,
                                 vocab_size - 1),
                     std::string(field));
    }
  }
  return std::nullopt;
}

template <typename T>
std::optional<Error> check_range(T value, T low, T high, std::string_view field) {
  if (value >= low && value <= high) return std::nullopt;  // NaN fails
  return invalid(fmt::format("{} must be from {} to {}; got {}.", field, low, high, value),
                 std::string(field));
}

std::optional<Error> check_numbers(const sched::SamplingSpec& spec, const Engine::Options& limits) {
  constexpr float kAny = 1e6f;
  constexpr int32_t kAnyCount = INT32_MAX;
  std::optional<Error> error = check_range(spec.temperature, 0.0f, kAny, "temperature");
  if (!error) error = check_range(spec.top_p, 0.0f, 1.0f, "top_p");
  if (!error) error = check_range(spec.top_k, -1, kAnyCount, "top_k");
  if (!error) error = check_range(spec.min_p, 0.0f, 1.0f, "min_p");
  if (!error) error = check_range(spec.repetition_penalty, 1e-6f, kAny, "repetition_penalty");
  if (!error) error = check_range(spec.presence_penalty, -kAny, kAny, "presence_penalty");
  if (!error) error = check_range(spec.frequency_penalty, -kAny, kAny, "frequency_penalty");
  if (!error) error = check_range(spec.logprobs, -1, limits.max_logprobs, "logprobs");
  if (!error) {
    error = check_range(spec.prompt_logprobs, -1, limits.max_logprobs, "prompt_logprobs");
  }
  if (!error) error = check_range(spec.max_tokens, 0, kAnyCount, "max_tokens");
  if (!error) error = check_range(spec.min_tokens, 0, std::max(spec.max_tokens, 0), "min_tokens");
  return error;
}

std::optional<Error> check_bias(const sched::SamplingSpec& spec, int64_t vocab_size) {
  for (const auto& [token, bias] : spec.logit_bias) {
    if (std::optional<Error> error = check_ids({token}, vocab_size, "logit_bias")) return error;
    if (std::optional<Error> error = check_range(bias, -100.0f, 100.0f, "logit_bias")) return error;
  }
  return std::nullopt;
}

std::optional<Error> check_stops(const EngineRequest& request, bool has_tokenizer) {
  if (request.stop.empty()) return std::nullopt;
  if (!has_tokenizer) return invalid("stop: there is no tokenizer to match strings with.", "stop");
  if (request.stop.size() > kMaxStops) {
    return invalid(fmt::format("stop: at most {} strings; got {}.", kMaxStops, request.stop.size()),
                   "stop");
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return invalid("stop must not contain an empty string.", "stop");
    if (stop.size() > kMaxStopBytes) {
      return invalid(
          fmt::format("stop: a string of {} bytes; at most {}.", stop.size(), kMaxStopBytes),
          "stop");
    }
  }
  return std::nullopt;
}

std::optional<Error> check_sharing(const EngineRequest& request, const Engine::Options& options) {
  if (request.priority != 0 && options.scheduler.policy != sched::SchedulingPolicy::kPriority) {
    return invalid(fmt::format("priority is {}, but requests are served in the order of arrival "
                               "(--scheduling-policy fcfs).",
                               request.priority),
                   "priority");
  }
  if (request.cache_salt.size() > kMaxSaltBytes) {
    return invalid(
        fmt::format("cache_salt: {} bytes; at most {}.", request.cache_salt.size(), kMaxSaltBytes),
        "cache_salt");
  }
  return std::nullopt;
}

void sort_distinct(std::vector<int32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

std::optional<Error> check_request(const EngineRequest& request, const Engine::Options& options,
                                   bool has_tokenizer) {
  const sched::SamplingSpec& spec = request.sampling;
  if (request.prompt.empty()) return invalid("The prompt is empty: it has no tokens.", "prompt");
  std::optional<Error> error = check_ids(request.prompt, options.vocab_size, "prompt");
  if (!error) error = check_range(request.n, 1, options.max_choices, "n");
  if (!error) error = check_numbers(spec, options);
  if (!error) error = check_ids(spec.stop_token_ids, options.vocab_size, "stop_token_ids");
  if (!error) error = check_ids(spec.allowed_token_ids, options.vocab_size, "allowed_token_ids");
  if (!error) error = check_bias(spec, options.vocab_size);
  if (!error) error = check_stops(request, has_tokenizer);
  if (!error) error = check_sharing(request, options);
  if (error) return error;

  const int64_t limit = options.scheduler.max_model_len;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt + spec.max_tokens > limit) {
    return invalid(
        fmt::format("This model's maximum context length is {} tokens. The request has {} prompt "
                    "tokens and asks for {} more ({} in all).",
                    limit, prompt, spec.max_tokens, prompt + spec.max_tokens),
        prompt >= limit ? "prompt" : "max_tokens");
  }
  return std::nullopt;
}

void normalize_request(EngineRequest& request, const Engine::Options& options) {
  sched::SamplingSpec& spec = request.sampling;
  if (!spec.ignore_eos) {
    spec.stop_token_ids.insert(spec.stop_token_ids.end(), options.eos_token_ids.begin(),
                               options.eos_token_ids.end());
  }
  sort_distinct(spec.stop_token_ids);
  sort_distinct(spec.allowed_token_ids);
}

}  // namespace quire::engine
