// Batching: static batches against continuous batching, on one engine, with the same requests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <boost/json/fwd.hpp>

#include "quire/llm/llm.h"

namespace quire::bench {

enum class BatchingMode : uint8_t {
  kStatic,      // `batch` requests start together, the next ones when the longest has ended
  kContinuous,  // all are submitted at once; the engine runs up to max_num_seqs of them
};

struct BatchingOptions {
  int32_t num_requests = 128;
  int32_t batch = 16;  // of a static batch; the engine's max_num_seqs ought to be the same
  int32_t input_len = 16;
  int32_t min_output_len = 4;  // output lengths are drawn log-uniformly
  int32_t max_output_len = 256;
  int32_t rounds = 3;
  uint64_t seed = 0;
  /// Called when a mode of a round is done. May be empty.
  std::function<void(int32_t round, BatchingMode mode, double output_tokens_per_s)> on_round = {};
};

struct BatchingResult {
  int64_t output_tokens = 0;  // of one round, the same in both modes
  /// Engine steps that the requests took in the last round of each mode.
  int64_t static_steps = 0;
  int64_t continuous_steps = 0;
  std::vector<double> static_tokens_per_s;  // by round
  std::vector<double> continuous_tokens_per_s;

  /// The median over rounds of continuous / static.
  double ratio() const;
};

/// The drawn output lengths of a round: the same in every round and mode.
std::vector<int32_t> draw_output_lengths(const BatchingOptions& options);

/// Runs both modes in turns. Prompts are new random tokens each time, so that no prefix cache helps
/// one of them. Rows that have ended cost nothing in either mode: the engine drops them. Throws
/// LoadError when a request is refused or fails.
BatchingResult measure_batching(llm::LLM& llm, const BatchingOptions& options);

std::string format_batching(const BatchingOptions& options, const BatchingResult& result);
boost::json::object batching_json(const BatchingOptions& options, const BatchingResult& result);

}  // namespace quire::bench
