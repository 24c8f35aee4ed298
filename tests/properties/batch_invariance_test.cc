// A request's tokens do not depend on its neighbours: the same 16 requests alone and together, at
// several token budgets, thread counts and pool sizes give the same ids and log-probabilities, bit
// for bit.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "quire/checkpoint/testing/temp_folder.h"
#include "quire/llm/llm.h"
#include "tests/golden/tiny_model.h"

namespace quire {
namespace {

using llm::LLM;
using llm::RequestOutput;
using llm::SamplingParams;

constexpr int32_t kVocab = 160;
constexpr size_t kRequests = 16;

struct Request {
  std::vector<int32_t> prompt;
  SamplingParams params;
};

/// Greedy and sampled ones, with every option that keeps state; prompts of 1 to 90 tokens.
std::vector<Request> make_requests() {
  std::mt19937 generator(20);
  std::vector<Request> requests(kRequests);
  for (size_t i = 0; i < kRequests; ++i) {
    Request& request = requests[i];
    const size_t length = i == 0 ? 1 : 1 + generator() % 90;
    for (size_t t = 0; t < length; ++t) {
      request.prompt.push_back(static_cast<int32_t>(generator() % kVocab));
    }
    SamplingParams& params = request.params;
    params.max_tokens = 24;
    params.ignore_eos = true;
    params.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    params.seed = static_cast<int64_t>(i);
    params.logprobs = 2;
    if (i % 3 == 0) params.prompt_logprobs = 1;
    if (i % 4 == 1) params.top_p = 0.8f;
    if (i % 4 == 3) params.top_k = 7;
    if (i % 5 == 0) params.repetition_penalty = 1.3f;
    if (i % 5 == 2) params.frequency_penalty = 0.4f;
    if (i % 7 == 3) params.n = 3;
  }
  return requests;
}

/// All that a request's answer says, as one comparable string of numbers.
std::string everything(const RequestOutput& output) {
  std::string text;
  const auto add = [&text](const runner::PositionLogprobs& position) {
    const auto one = [&text](const runner::TokenLogprob& entry) {
      text += std::to_string(entry.token) + ":" +
              std::to_string(std::bit_cast<uint32_t>(entry.logprob)) + " ";
    };
    one(position.chosen);
    for (const runner::TokenLogprob& entry : position.top) one(entry);
  };
  EXPECT_FALSE(output.error.has_value());
  for (const runner::PositionLogprobs& position : output.prompt_logprobs) add(position);
  for (const llm::CompletionOutput& choice : output.outputs) {
    text += "| ";
    for (const int32_t token : choice.token_ids) text += std::to_string(token) + " ";
    for (const runner::PositionLogprobs& position : choice.logprobs) add(position);
  }
  return text;
}

struct Setting {
  int64_t budget = 2048;
  int32_t threads = 1;
  int64_t num_blocks = 1024;
  int32_t max_num_seqs = 32;
  bool prefix_caching = true;
  int32_t block_size = 16;
};

class BatchInvariance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const golden::TinyModel& model : golden::tiny_models()) {
      if (model.name == GetParam()) golden::write_folder(model, folder_.path());
    }
  }

  std::unique_ptr<LLM> open(const Setting& setting) const {
    llm::Options options;
    options.model = folder_.path();
    options.max_num_batched_tokens = setting.budget;
    options.threads = setting.threads;
    options.num_gpu_blocks_override = setting.num_blocks;
    options.max_num_seqs = setting.max_num_seqs;
    options.enable_prefix_caching = setting.prefix_caching;
    options.block_size = setting.block_size;
    return std::make_unique<LLM>(options);
  }

  /// Each on its own: the next begins when the last has ended.
  std::vector<std::string> one_by_one(LLM& llm) const {
    std::vector<std::string> outputs;
    for (const Request& request : requests_) {
      const std::vector<std::vector<int32_t>> prompt = {request.prompt};
      outputs.push_back(everything(llm.generate(prompt, request.params).front()));
    }
    return outputs;
  }

  /// All at once, through the engine's own interface, since their options differ.
  std::vector<std::string> together(LLM& llm) const {
    std::vector<engine::OutputStream> streams;
    for (const Request& request : requests_) {
      streams.push_back(
          llm.engine().submit(llm.make_request(request.prompt, request.params).value()).value());
    }
    std::vector<std::string> outputs;
    for (engine::OutputStream& stream : streams) {
      RequestOutput output;
      std::vector<engine::OutputEvent> events;
      while (stream.wait(events)) {
        for (const engine::OutputEvent& event : events) {
          const auto index = static_cast<size_t>(event.choice);
          if (output.outputs.size() <= index) output.outputs.resize(index + 1);
          llm::CompletionOutput& choice = output.outputs[index];
          choice.token_ids.insert(choice.token_ids.end(), event.tokens.begin(), event.tokens.end());
          choice.logprobs.insert(choice.logprobs.end(), event.logprobs.begin(),
                                 event.logprobs.end());
          if (!event.prompt_logprobs.empty()) output.prompt_logprobs = event.prompt_logprobs;
        }
      }
      outputs.push_back(everything(output));
    }
    return outputs;
  }

  checkpoint::testing::TempFolder folder_;
  std::vector<Request> requests_ = make_requests();
};

TEST_P(BatchInvariance, AloneTogetherBudgetsThreadsAndPreemption) {
  const std::vector<std::string> expected = one_by_one(*open({.prefix_caching = false}));
  ASSERT_EQ(expected.size(), kRequests);
  for (const int64_t budget : {16, 64, 2048}) {
    for (const int32_t threads : {1, 2}) {
      const auto llm = open({.budget = budget, .threads = threads});
      EXPECT_EQ(one_by_one(*llm), expected) << "budget " << budget << ", threads " << threads;
      EXPECT_EQ(together(*llm), expected) << "budget " << budget << ", threads " << threads;
      EXPECT_EQ(llm->engine().stats().num_preemptions, 0);
      EXPECT_EQ(llm->engine().stats().kv_cache_usage, 0.0);
      // One sequence of the model's length needs 16 blocks: together they do not fit.
      const auto small = open({.budget = budget, .threads = threads, .num_blocks = 16});
      EXPECT_EQ(together(*small), expected) << "a small pool, budget " << budget;
      EXPECT_GT(small->engine().stats().num_preemptions, 0);
      EXPECT_EQ(small->engine().stats().kv_cache_usage, 0.0);
    }
  }
}

/// Prompts that begin alike: computed each alone without the cache, and then shared in flight, from
/// blocks left behind, by chunks and by preempted sequences, at several block sizes.
TEST_P(BatchInvariance, PrefixCacheOnAndOffColdAndWarm) {
  for (size_t i = 0; i < kRequests; ++i) {
    std::vector<int32_t>& prompt = requests_[i].prompt;
    const std::vector<int32_t>& start = requests_[i % 3].prompt;
    std::vector<int32_t> shared(70 + i % 3);
    for (size_t t = 0; t < shared.size(); ++t) {
      shared[t] = static_cast<int32_t>((start.front() + 7 * t) % kVocab);
    }
    prompt.insert(prompt.begin(), shared.begin(), shared.end());
  }
  const std::vector<std::string> expected = one_by_one(*open({.prefix_caching = false}));
  for (const int32_t block_size : {16, 32, 128}) {
    for (const int64_t budget : {50, 2048}) {
      const auto llm = open({.budget = budget, .block_size = block_size});
      EXPECT_EQ(together(*llm), expected) << "cold, budget " << budget << ", " << block_size;
      const engine::EngineStats cold = llm->engine().stats();
      EXPECT_GT(cold.prefix_cache_queries, cold.prefix_cache_hits);
      EXPECT_GT(cold.prefix_cache_hits, block_size < 128 ? 0 : -1);
      EXPECT_EQ(together(*llm), expected) << "warm, budget " << budget << ", " << block_size;
      EXPECT_EQ(one_by_one(*llm), expected) << "warm alone, budget " << budget;
      const engine::EngineStats warm = llm->engine().stats();
      EXPECT_GT(warm.prefix_cache_hits, cold.prefix_cache_hits);
      EXPECT_GT(warm.prompt_tokens_cached, cold.prompt_tokens_cached);
      EXPECT_EQ(warm.kv_cache_usage, 0.0);
    }
    const auto small = open({.num_blocks = 256 / block_size, .block_size = block_size});
    EXPECT_EQ(together(*small), expected) << "a small pool, " << block_size;
    EXPECT_GT(small->engine().stats().num_preemptions, 0);
    const auto off = open({.prefix_caching = false, .block_size = block_size});
    EXPECT_EQ(together(*off), expected);
    EXPECT_EQ(off->engine().stats().prefix_cache_queries, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, BatchInvariance,
                         testing::Values("untied_fp32", "llama3_rope_bf16"),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace quire
