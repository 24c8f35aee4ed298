// Arrival: a request of a trace in a few numbers, from which its prompt is made up.
#pragma once

#include <cstdint>
#include <string>

#include "quire/sched/request.h"

namespace quire::sched::testing {

struct Arrival {
  int32_t id = 0;
  int32_t length = 0;  // of the prompt
  int32_t prefix = 0;  // its first prefix_length tokens are those of all with this prefix
  int32_t prefix_length = 0;
  int32_t max_tokens = 16;
  int32_t n = 1;
  int32_t priority = 0;
  int32_t seed = 0;
  int32_t stop = -1;  // a stop token, if there is one
  bool logprobs = false;
  std::string salt = {};
};

Request request_of(const Arrival& arrival);
/// As a statement of the trace language.
std::string text_of(const Arrival& arrival);

}  // namespace quire::sched::testing
