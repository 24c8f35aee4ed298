// The default model's log-probabilities against transformers on the same dequantized weights.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

#include "quire/checkpoint/checkpoint.h"
#include "quire/hub/model_store.h"
#include "tests/golden/golden_backends.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/prompt_session.h"

namespace quire::golden {
namespace {

/// The reference for one text, and how far a model's answers are from it.
class TextGolden {
 public:
  TextGolden(const GoldenFile& file, const std::string& name)
      : ids(file.ints(name + ".ids")),
        logprobs_(file.floats(name + ".logprobs")),
        argmax_(file.ints(name + ".argmax")),
        top_ids_(file.ints(name + ".top_ids")),
        top_logprobs_(file.floats(name + ".top_logprobs")),
        rest_logprob_(file.floats(name + ".rest_logprob")),
        top_(static_cast<size_t>(file.cols(name + ".top_ids"))) {}

  struct Distance {
    double worst_logprob = 0;  // of the text's own next tokens
    int64_t other_argmax = 0;  // positions with another likeliest token
    double mean_kl = 0;        // KL(reference || model), nats
  };
  Distance distance(const std::vector<std::vector<float>>& logits) const {
    Distance result;
    for (size_t i = 0; i < logits.size(); ++i) {
      const std::vector<double> q = log_softmax(logits[i]);
      if (i < logprobs_.size()) {
        const double d = std::fabs(q[static_cast<size_t>(ids[i + 1])] - double{logprobs_[i]});
        result.worst_logprob = std::isnan(d) ? INFINITY : std::max(result.worst_logprob, d);
      }
      const auto likeliest = std::max_element(q.begin(), q.end()) - q.begin();
      result.other_argmax += likeliest != argmax_[i];
      result.mean_kl += divergence(i, q) / static_cast<double>(logits.size());
    }
    return result;
  }

  const std::vector<int32_t> ids;

 private:
  static std::vector<double> log_softmax(const std::vector<float>& logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) sum += std::exp(double{x} - largest);
    std::vector<double> result;
    result.reserve(logits.size());
    for (const float x : logits) result.push_back(double{x} - largest - std::log(sum));
    return result;
  }

  /// KL divergence of position i over the partition {each of the reference's likeliest tokens, all
  /// others together}: by the data processing inequality a lower bound of the whole, divided here
  /// by the mass of the likeliest, as if the others were as far off as they are. The stored fp16
  /// log-probabilities are normalized first, so that their rounding has no first-order effect.
  double divergence(size_t i, const std::vector<double>& q) const {
    double total = std::exp(double{rest_logprob_[i]});
    const double rest = total;
    for (size_t j = 0; j < top_; ++j) total += std::exp(double{top_logprobs_[i * top_ + j]});
    double kl = 0;
    double q_rest = 1;
    for (size_t j = 0; j < top_; ++j) {
      const double log_p = double{top_logprobs_[i * top_ + j]} - std::log(total);
      const double log_q = q[static_cast<size_t>(top_ids_[i * top_ + j])];
      kl += std::exp(log_p) * (log_p - log_q);
      q_rest -= std::exp(log_q);
    }
    kl += rest / total * std::log(rest / total / std::max(q_rest, 1e-300));
    return kl / (1 - rest / total);
  }

  std::vector<float> logprobs_;
  std::vector<int32_t> argmax_;
  std::vector<int32_t> top_ids_;
  std::vector<float> top_logprobs_;
  std::vector<float> rest_logprob_;
  size_t top_;
};

/// QUIRE_TEST_MODEL, or the default model where it was pulled before; empty: neither.
std::string model_path() {
  if (const char* path = std::getenv("QUIRE_TEST_MODEL")) return path;
  const hub::ModelStore store({.cache_folder = hub::ModelStore::default_cache_folder()});
  return store.resolve(store.catalogue().default_entry().name).value_or("");
}

/// The worst distance over the three texts.
class DefaultModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (model_path().empty()) {
      GTEST_SKIP() << "the default model is not here: quire pull, or set QUIRE_TEST_MODEL";
    };
  }

  static TextGolden::Distance worst(weights::ActivationDType activation, DType kv_dtype) {
    const auto checkpoint = checkpoint::open_checkpoint(model_path());
    const auto backend = best_backend();
    PromptSession session(
        *backend, *checkpoint.tensors, checkpoint.config,
        {.load = {.dtype = weights::WeightDType::kFloat32, .activation = activation},
         .kv_dtype = kv_dtype,
         .max_context = 256});
    const GoldenFile file("default_model.safetensors");
    TextGolden::Distance result;
    for (const std::string name : {"english", "code", "multilingual"}) {
      const TextGolden golden(file, name);
      std::vector<int32_t> positions;
      for (size_t i = 0; i < golden.ids.size(); ++i) positions.push_back(static_cast<int32_t>(i));
      const auto d = golden.distance(session.run(golden.ids, positions, 256));
      std::printf("%s: log-probability within %.2e, %d other argmax, KL %.2e\n", name.c_str(),
                  d.worst_logprob, static_cast<int>(d.other_argmax), d.mean_kl);
      result.worst_logprob = std::max(result.worst_logprob, d.worst_logprob);
      result.other_argmax += d.other_argmax;
      result.mean_kl += d.mean_kl / 3;
    }
    return result;
  }
};

TEST_F(DefaultModel, Fp32EqualsTheReference) {
  const auto d = worst(weights::ActivationDType::kF32, DType::kF32);
  EXPECT_LE(d.worst_logprob, 1e-3);
  EXPECT_EQ(d.other_argmax, 0);
  EXPECT_LE(d.mean_kl, 1e-6);
}

TEST_F(DefaultModel, Bf16ActivationsStayClose) {
  const auto d = worst(weights::ActivationDType::kBF16, DType::kBF16);
  EXPECT_LE(d.mean_kl, 5e-4);
  EXPECT_GT(d.mean_kl, 1e-7) << "activations were not rounded at all";
}

TEST_F(DefaultModel, Int8ActivationsStayClose) {
  const auto d = worst(weights::ActivationDType::kI8, DType::kBF16);
  EXPECT_LE(d.mean_kl, 4e-3);
  EXPECT_GT(d.mean_kl, 1e-6) << "activations were not rounded at all";
}

}  // namespace
}  // namespace quire::golden
