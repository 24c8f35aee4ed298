#include "quire/bench/perplexity/perplexity.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/bench/step_vectors.h"
#include "quire/bench/testing/tiny_gguf.h"
#include "quire/checkpoint/testing/temp_folder.h"
#include "quire/llm/llm.h"

namespace quire::bench {
namespace {

class PerplexityTest : public ::testing::Test {
 protected:
  PerplexityOptions options() const {
    PerplexityOptions options;
    options.llm.model = path_;
    options.llm.threads = 2;
    return options;
  }

  /// Mean of -ln p(token) over each window's tokens from the second on, by the engine's own
  /// prompt log-probabilities, every window a request.
  double engine_nll(const PerplexityOptions& options, const std::vector<int32_t>& tokens,
                    int64_t windows) const {
    llm::Options llm_options = options.llm;
    llm_options.activation_dtype = options.activation_dtypes.front();
    llm_options.num_gpu_blocks_override = 64;
    llm::LLM llm(llm_options);
    llm::SamplingParams params;
    params.max_tokens = 0;
    params.prompt_logprobs = 1;
    std::vector<std::vector<int32_t>> prompts;
    for (int64_t i = 0; i < windows; ++i) {
      prompts.emplace_back(tokens.begin() + i * options.window,
                           tokens.begin() + (i + 1) * options.window);
    }
    double sum = 0;
    int64_t count = 0;
    for (const llm::RequestOutput& output : llm.generate(prompts, params)) {
      EXPECT_FALSE(output.error);
      for (const runner::PositionLogprobs& position : output.prompt_logprobs) {
        sum -= static_cast<double>(position.chosen.logprob);
        ++count;
      }
    }
    EXPECT_EQ(count, windows * (options.window - 1));
    return sum / static_cast<double>(count);
  }

  checkpoint::testing::TempFolder folder_;
  std::string path_ = testing::write_tiny_gguf(folder_.path());
};

// 150 tokens take two steps, so that the seam between them is looked at as well.
TEST_F(PerplexityTest, EqualsTheEnginesOwnLogProbabilities) {
  PerplexityOptions options = this->options();
  options.window = 150;
  options.windows = 2;
  options.activation_dtypes = {"fp32"};
  const std::vector<int32_t> tokens = some_tokens(400, testing::kTinyVocab, 3);
  const PerplexityResult result = measure_perplexity(options, tokens);
  EXPECT_EQ(result.windows, 2);
  EXPECT_EQ(result.scored, 2 * 149);
  ASSERT_EQ(result.scores.size(), 1u);
  EXPECT_NEAR(result.scores[0].mean_nll, engine_nll(options, tokens, 2), 1e-6);
  EXPECT_NEAR(result.scores[0].perplexity, std::exp(result.scores[0].mean_nll), 1e-9);
  EXPECT_EQ(result.scores[0].mean_kl, 0);
  // The weights are random, and so the model is about as bad as a uniform guess: far from 1.
  EXPECT_GT(result.scores[0].perplexity, 20);
  EXPECT_GT(result.scores[0].stderr_nll, 0);
}

TEST_F(PerplexityTest, ComparesActivationTypesInOneGo) {
  PerplexityOptions options = this->options();
  options.window = 64;
  options.windows = 3;
  options.activation_dtypes = {"fp32", "bf16", "int8"};
  int64_t last = -1;
  options.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 3);
    EXPECT_EQ(done, ++last);
  };
  const PerplexityResult result =
      measure_perplexity(options, some_tokens(1000, testing::kTinyVocab, 5));
  EXPECT_EQ(last, 3);
  ASSERT_EQ(result.scores.size(), 3u);
  EXPECT_GT(result.scores[1].mean_kl, 0);
  EXPECT_GT(result.scores[2].mean_kl, result.scores[1].mean_kl);  // int8 rounds more than bf16
  EXPECT_LT(result.scores[2].mean_kl, 0.1);
  const boost::json::object json = perplexity_json(result);
  EXPECT_EQ(json.at("scores").as_array().size(), 3u);
  EXPECT_EQ(json.at("scores").as_array()[0].at("ratio").as_double(), 1.0);
  EXPECT_NE(format_perplexity(result).find("int8"), std::string::npos);
}

TEST_F(PerplexityTest, ATextWithoutAWholeWindowIsRefused) {
  PerplexityOptions options = this->options();
  options.window = 64;
  EXPECT_THROW(measure_perplexity(options, some_tokens(63, testing::kTinyVocab, 1)), LoadError);
  options.window = 1;
  EXPECT_THROW(measure_perplexity(options, some_tokens(63, testing::kTinyVocab, 1)), LoadError);
}

TEST(KlDivergence, OfTwoDistributionsByHand) {
  const std::vector<float> even = {0.5f, 0.5f};
  const std::vector<float> tilted = {std::log(0.75f), std::log(0.25f)};
  const double lse_even = log_sum_exp(even);
  const double lse_tilted = log_sum_exp(tilted);
  EXPECT_NEAR(lse_even, 0.5 + std::log(2.0), 1e-12);
  EXPECT_NEAR(lse_tilted, 0, 1e-6);
  const double expected = 0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25);
  EXPECT_NEAR(kl_divergence(even, lse_even, tilted, lse_tilted), expected, 1e-6);
  EXPECT_NEAR(kl_divergence(tilted, lse_tilted, tilted, lse_tilted), 0, 1e-12);
}

}  // namespace
}  // namespace quire::bench
