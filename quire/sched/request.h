// Request: what one call asks of the scheduler: a prompt and how many continuations of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/sched/batch_plan.h"
#include "quire/sched/sampling_spec.h"

namespace quire::sched {

/// As SamplingSpec::max_tokens: as many as the context and the KV cache hold.
inline constexpr int32_t kMaxTokensUnlimited = -1;

struct Request {
  RequestId id = 0;  // never used twice
  std::vector<int32_t> prompt = {};
  SamplingSpec sampling = {};
  int32_t n = 1;         // choices
  int32_t priority = 0;  // for scheduling by priority (lower first); first-come ignores it

  /// What decides, beside the tokens, which cached blocks the request may share: see kv::CacheKey.
  std::string cache_salt = {};
  std::string adapter = {};
  uint64_t numbers_key = 0;
};

}  // namespace quire::sched
