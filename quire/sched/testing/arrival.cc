#include "quire/sched/testing/arrival.h"

#include <fmt/format.h>

#include "quire/sched/testing/fake_model.h"

namespace quire::sched::testing {

Request request_of(const Arrival& arrival) {
  Request request{.id = arrival.id, .n = arrival.n, .priority = arrival.priority};
  for (int32_t i = 0; i < arrival.length; ++i) {
    const int32_t start = i < arrival.prefix_length ? 1000 * arrival.prefix : arrival.id + 1;
    request.prompt.push_back((start * 31 + i * 7) % kFakeVocab);
  }
  request.cache_salt = arrival.salt;
  request.sampling.max_tokens = arrival.max_tokens;
  request.sampling.seed = static_cast<uint64_t>(arrival.seed);
  if (arrival.stop >= 0) request.sampling.stop_token_ids = {arrival.stop};
  if (arrival.logprobs) request.sampling.prompt_logprobs = 0;
  return request;
}

std::string text_of(const Arrival& arrival) {
  std::string text =
      fmt::format("submit r{} {} max {}", arrival.id, arrival.length, arrival.max_tokens);
  if (arrival.prefix_length > 0) {
    text += fmt::format(" prefix {} {}", arrival.prefix, arrival.prefix_length);
  }
  if (arrival.n != 1) text += fmt::format(" n {}", arrival.n);
  if (arrival.priority != 0) text += fmt::format(" priority {}", arrival.priority);
  if (arrival.seed != 0) text += fmt::format(" seed {}", arrival.seed);
  if (arrival.stop >= 0) text += fmt::format(" stop {}", arrival.stop);
  if (!arrival.salt.empty()) text += fmt::format(" salt {}", arrival.salt);
  if (arrival.logprobs) text += " logprobs";
  return text;
}

}  // namespace quire::sched::testing
