// RequestBody: a drawn request as the JSON that an OpenAI-compatible server takes.
#pragma once

#include <string>

#include "quire/bench/workload.h"

namespace quire::bench {

struct BodyOptions {
  std::string model;
  bool chat = false;  // one user message, as text, instead of a completion's prompt
  bool text = false;  // a completion's prompt as text instead of token ids
  bool ignore_eos = false;
  double temperature = 0;
};

/// Streamed, with usage at the end. As text, each prompt token stands as a common word, which most
/// tokenizers make one token of: lengths are then about right, and shared prefixes stay shared.
std::string request_body(const WorkloadRequest& request, const BodyOptions& options);

}  // namespace quire::bench
