// Perplexity: how well a model predicts a text, window by window, under several types of
// activations at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <boost/json/fwd.hpp>

#include "quire/llm/options.h"

namespace quire::bench {

struct PerplexityOptions {
  llm::Options llm;      // model, KV type, threads
  int64_t window = 512;  // tokens; each window is a sequence of its own, scored from its second on
  int64_t windows = 64;  // at most; fewer where the text ends
  /// --activation-dtype of each scoring; the first is what the others are compared with.
  std::vector<std::string> activation_dtypes = {"auto"};
  std::function<void(int64_t done, int64_t total)> on_progress = {};  // windows
};

struct PerplexityScore {
  std::string activation_dtype;
  double perplexity = 0;  // exp of the mean of -ln p(token)
  double mean_nll = 0;    // nats
  double stderr_nll = 0;  // of that mean, tokens taken as independent
  double mean_kl = 0;     // nats a token: KL(first || this), 0 for the first
};

struct PerplexityResult {
  int64_t window = 0;
  int64_t windows = 0;
  int64_t scored = 0;  // tokens
  std::vector<PerplexityScore> scores;
};

/// Throws LoadError when the text has no whole window, or the model none of these types.
PerplexityResult measure_perplexity(const PerplexityOptions& options,
                                    std::span<const int32_t> tokens);

std::string format_perplexity(const PerplexityResult& result);
boost::json::object perplexity_json(const PerplexityResult& result);

/// ln of the sum of exp(logits).
double log_sum_exp(std::span<const float> logits);

/// sum of p (ln p - ln q), for p and q the softmax of the logits, whose log_sum_exp are given.
double kl_divergence(std::span<const float> p_logits, double p_lse, std::span<const float> q_logits,
                     double q_lse);

}  // namespace quire::bench
