// Workload: the requests of a benchmark, drawn from a seed: prompts, lengths, times of arrival.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quire/bench/lengths.h"

namespace quire::bench {

struct WorkloadOptions {
  int32_t num_prompts = 1000;
  /// Requests a second; 0: all arrive at once.
  double request_rate = 0;
  /// Tokens in front of every prompt, shared by all requests of a group, beside the drawn length.
  int32_t prefix_len = 0;
  int32_t prefix_groups = 1;
  /// Prompt tokens are drawn from [first_token_id, vocab_size): the first ones are often special.
  int32_t first_token_id = 256;
  int32_t vocab_size = 8192;
  uint64_t seed = 0;
};

struct WorkloadRequest {
  std::vector<int32_t> prompt;
  int32_t output_len = 0;
  double arrival_s = 0;  // from the start; ascending
  int32_t prefix_group = 0;
};

/// `num_prompts` pairs, each length drawn evenly from [len * (1 - range), len * (1 + range)], at
/// least 1.
std::vector<LengthPair> draw_lengths(LengthPair around, double range, int32_t num_prompts,
                                     uint64_t seed);

/// Takes `lengths` in a shuffled order, again from the start when they run out. Request i belongs
/// to group i % prefix_groups.
std::vector<WorkloadRequest> make_workload(std::span<const LengthPair> lengths,
                                           const WorkloadOptions& options);

}  // namespace quire::bench
