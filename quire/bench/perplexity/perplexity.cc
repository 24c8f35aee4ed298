#include "quire/bench/perplexity/perplexity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/bench/model/loaded_program.h"
#include "quire/bench/step_vectors.h"
#include "quire/bench/text_table.h"

namespace quire::bench {
namespace {

namespace json = boost::json;

constexpr int64_t kStepTokens = 128;  // computed in a step, with the logits of them all

/// -ln p of every scored token, and the divergence at its position.
struct Variant {
  std::string activation_dtype;
  std::unique_ptr<LoadedProgram> loaded;
  std::vector<double> nll;
  std::vector<double> kl;
};

class Scoring {
 public:
  Scoring(const PerplexityOptions& options, std::span<const int32_t> tokens)
      : options_(options), tokens_(tokens) {
    for (const std::string& name : options.activation_dtypes) {
      LoadedProgramOptions loaded;
      loaded.llm = options.llm;
      loaded.llm.activation_dtype = name;
      loaded.max_tokens = std::min(kStepTokens, options.window);
      loaded.max_logits = loaded.max_tokens;
      loaded.kv_tokens = options.window;
      variants_.push_back({name, std::make_unique<LoadedProgram>(loaded), {}, {}});
    }
    check_ids();
  }

  /// Scores tokens [begin, begin + window) from the second on.
  void score_window(int64_t begin) {
    for (int64_t done = 0; done < options_.window; done += kStepTokens) {
      const int64_t count = std::min(kStepTokens, options_.window - done);
      for (Variant& variant : variants_) run_step(*variant.loaded, begin, done, count);
      // The last token of the window predicts one that is not part of it.
      score_rows(begin + done + 1, std::min(count, options_.window - done - 1));
    }
  }

  std::vector<PerplexityScore> scores() const {
    std::vector<PerplexityScore> out;
    for (const Variant& variant : variants_) {
      const auto count = static_cast<double>(variant.nll.size());
      PerplexityScore score;
      score.activation_dtype = variant.activation_dtype;
      for (const double value : variant.nll) score.mean_nll += value / count;
      double squares = 0;
      for (const double value : variant.nll) squares += std::pow(value - score.mean_nll, 2);
      score.stderr_nll = count > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
      score.perplexity = std::exp(score.mean_nll);
      for (const double value : variant.kl) score.mean_kl += value / count;
      out.push_back(std::move(score));
    }
    return out;
  }

  int64_t num_scored() const { return static_cast<int64_t>(variants_.front().nll.size()); }

 private:
  void check_ids() const {
    const int64_t vocab = variants_.front().loaded->program().vocab_size;
    for (const int32_t id : tokens_) {
      if (id < 0 || id >= vocab) {
        throw LoadError("perplexity", "token ids", fmt::format("below {}", vocab),
                        std::to_string(id));
      }
    }
  }

  void run_step(LoadedProgram& loaded, int64_t begin, int64_t done, int64_t count) const {
    StepVectors step(static_cast<int32_t>(loaded.program().cache_groups.size()),
                     loaded.block_tokens());
    step.add_row(tokens_.subspan(static_cast<size_t>(begin + done), static_cast<size_t>(count)),
                 done, 0);
    step.want_logits(count);
    loaded.backend().launch(step.meta());
    loaded.backend().wait();
  }

  static std::span<const float> logits(LoadedProgram& loaded, int64_t row) {
    return {loaded.backend().logits() + row * loaded.backend().logits_stride(),
            static_cast<size_t>(loaded.program().vocab_size)};
  }

  /// Row r's logits are of token first + r.
  void score_rows(int64_t first, int64_t rows) {
    const size_t before = variants_.front().nll.size();
    for (Variant& variant : variants_) {
      variant.nll.resize(before + static_cast<size_t>(rows));
      variant.kl.resize(before + static_cast<size_t>(rows));
    }
    variants_.front().loaded->backend().parallel([&](int worker, int num_workers) {
      for (int64_t row = worker; row < rows; row += num_workers) {
        score_row(row, before + static_cast<size_t>(row),
                  tokens_[static_cast<size_t>(first + row)]);
      }
    });
  }

  void score_row(int64_t row, size_t index, int32_t token) {
    const std::span<const float> reference = logits(*variants_.front().loaded, row);
    const double reference_lse = log_sum_exp(reference);
    for (Variant& variant : variants_) {
      const bool is_first = &variant == &variants_.front();
      const std::span<const float> own = is_first ? reference : logits(*variant.loaded, row);
      const double lse = is_first ? reference_lse : log_sum_exp(own);
      variant.nll[index] = lse - static_cast<double>(own[static_cast<size_t>(token)]);
      variant.kl[index] = is_first ? 0 : kl_divergence(reference, reference_lse, own, lse);
    }
  }

  const PerplexityOptions& options_;
  const std::span<const int32_t> tokens_;
  std::vector<Variant> variants_;
};

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

double kl_divergence(std::span<const float> p_logits, double p_lse, std::span<const float> q_logits,
                     double q_lse) {
  constexpr double kNegligible = -40;  // ln p; such a token adds less than 1e-15
  double sum = 0;
  for (size_t i = 0; i < p_logits.size(); ++i) {
    const double log_p = static_cast<double>(p_logits[i]) - p_lse;
    if (log_p < kNegligible) continue;
    sum += std::exp(log_p) * (log_p - (static_cast<double>(q_logits[i]) - q_lse));
  }
  return sum;
}

PerplexityResult measure_perplexity(const PerplexityOptions& options,
                                    std::span<const int32_t> tokens) {
  if (options.window < 2 || options.windows < 1) {
    throw LoadError("perplexity", "a window has 2 tokens or more, and there is one or more");
  }
  if (options.activation_dtypes.empty()) {
    throw LoadError("perplexity", "no activation type is given");
  }
  const int64_t windows =
      std::min(options.windows, static_cast<int64_t>(tokens.size()) / options.window);
  if (windows == 0) {
    throw LoadError("perplexity", "text", fmt::format("{} tokens or more", options.window),
                    std::to_string(tokens.size()));
  }
  Scoring scoring(options, tokens);
  for (int64_t i = 0; i < windows; ++i) {
    if (options.on_progress) options.on_progress(i, windows);
    scoring.score_window(i * options.window);
  }
  if (options.on_progress) options.on_progress(windows, windows);
  return {.window = options.window,
          .windows = windows,
          .scored = scoring.num_scored(),
          .scores = scoring.scores()};
}

std::string format_perplexity(const PerplexityResult& result) {
  TextTable table({"activations", "perplexity", "+-", "against the first", "mean KL, nats"});
  const double first = result.scores.front().perplexity;
  for (const PerplexityScore& score : result.scores) {
    const bool is_first = &score == &result.scores.front();
    table.add({score.activation_dtype, fmt::format("{:.4f}", score.perplexity),
               fmt::format("{:.4f}", score.perplexity * score.stderr_nll),
               is_first ? "-" : fmt::format("{:+.3f} %", 100 * (score.perplexity / first - 1)),
               is_first ? "-" : fmt::format("{:.2e}", score.mean_kl)});
  }
  return fmt::format("{} windows of {} tokens, {} tokens scored\n\n{}", result.windows,
                     result.window, result.scored, table.text());
}

json::object perplexity_json(const PerplexityResult& result) {
  json::array scores;
  const double first = result.scores.front().perplexity;
  for (const PerplexityScore& score : result.scores) {
    scores.push_back({{"activation_dtype", score.activation_dtype},
                      {"perplexity", score.perplexity},
                      {"mean_nll", score.mean_nll},
                      {"stderr_nll", score.stderr_nll},
                      {"ratio", score.perplexity / first},
                      {"mean_kl", score.mean_kl}});
  }
  return {{"window", result.window},
          {"windows", result.windows},
          {"scored", result.scored},
          {"scores", std::move(scores)}};
}

}  // namespace quire::bench
