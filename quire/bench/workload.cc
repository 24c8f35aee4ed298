#include "quire/bench/workload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "quire/base/check.h"
#include "quire/bench/random.h"

namespace quire::bench {
namespace {

void append_tokens(Random& random, const WorkloadOptions& options, int32_t count,
                   std::vector<int32_t>& out) {
  for (int32_t i = 0; i < count; ++i) {
    out.push_back(random.integer(options.first_token_id, options.vocab_size - 1));
  }
}

int32_t draw_length(Random& random, int32_t around, double range) {
  const auto low = static_cast<int32_t>(std::floor(around * (1 - range)));
  const auto high = static_cast<int32_t>(std::ceil(around * (1 + range)));
  return std::max(1, random.integer(low, high));
}

// A stream of its own for each kind of draw, so that changing one option leaves the others' draws.
Random stream(uint64_t seed, uint64_t kind) {
  return Random(seed * 0x9E3779B97F4A7C15u + kind);
}

}  // namespace

std::vector<LengthPair> draw_lengths(LengthPair around, double range, int32_t num_prompts,
                                     uint64_t seed) {
  Random random = stream(seed, 1);
  std::vector<LengthPair> pairs;
  for (int32_t i = 0; i < num_prompts; ++i) {
    const int32_t input = draw_length(random, around.input_len, range);
    pairs.push_back({input, draw_length(random, around.output_len, range)});
  }
  return pairs;
}

std::vector<WorkloadRequest> make_workload(std::span<const LengthPair> lengths,
                                           const WorkloadOptions& options) {
  QUIRE_CHECK(!lengths.empty() && options.prefix_groups > 0 &&
              options.vocab_size > options.first_token_id);
  Random order_draws = stream(options.seed, 2);
  Random token_draws = stream(options.seed, 3);
  Random prefix_draws = stream(options.seed, 4);
  Random arrival_draws = stream(options.seed, 5);
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<size_t>(order_draws.integer(0, static_cast<int32_t>(i) - 1))]);
  }
  std::vector<std::vector<int32_t>> prefixes(static_cast<size_t>(options.prefix_groups));
  for (auto& prefix : prefixes) append_tokens(prefix_draws, options, options.prefix_len, prefix);
  std::vector<WorkloadRequest> requests;
  double arrival_s = 0;
  for (int32_t i = 0; i < options.num_prompts; ++i) {
    const LengthPair& pair = lengths[order[static_cast<size_t>(i) % order.size()]];
    WorkloadRequest request;
    request.prefix_group = i % options.prefix_groups;
    request.prompt = prefixes[static_cast<size_t>(request.prefix_group)];
    append_tokens(token_draws, options, pair.input_len, request.prompt);
    request.output_len = pair.output_len;
    if (options.request_rate > 0) arrival_s += arrival_draws.exponential(options.request_rate);
    request.arrival_s = arrival_s;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace quire::bench
