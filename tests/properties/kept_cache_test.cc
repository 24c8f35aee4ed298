// A KV cache kept between runs: found again by the same model and settings, never used by others.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "quire/base/testing/temp_folder.h"
#include "quire/llm/llm.h"
#include "quire/runner/kept_tier.h"
#include "tests/golden/tiny_model.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

struct Answer {
  int64_t cached = 0;
  std::vector<int32_t> tokens;
};

class KeptCacheTest : public testing::Test {
 protected:
  KeptCacheTest() { golden::write_folder(golden::tiny_models().front(), model_.path()); }

  llm::Options options() const {
    llm::Options options;
    options.model = model_.path();
    options.max_num_seqs = 2;
    options.max_num_batched_tokens = 64;
    options.threads = 1;
    options.kv_cache_dir = kept_.file("cache");
    return options;
  }
  /// A process's life: the same prompt of 40 tokens, and eight more.
  static Answer run(const llm::Options& options) {
    llm::LLM llm(options);
    std::vector<std::vector<int32_t>> prompts(1);
    for (int32_t i = 0; i < 40; ++i) prompts[0].push_back(1 + i % 29);
    const llm::SamplingParams greedy{.temperature = 0.0f, .max_tokens = 8, .ignore_eos = true};
    const llm::RequestOutput output = llm.generate(prompts, greedy)[0];
    return {.cached = output.summary.num_cached_tokens, .tokens = output.outputs.at(0).token_ids};
  }
  /// What a second run with a change to its options finds of the first one's cache.
  int64_t found_with(const std::function<void(llm::Options&)>& change) const {
    fs::remove_all(kept_.file("cache"));
    run(options());
    llm::Options other = options();
    change(other);
    return run(other).cached;
  }

  const TempFolder model_;
  const TempFolder kept_;
};

TEST_F(KeptCacheTest, TheSameRunFindsItWithTheSameTokens) {
  const Answer first = run(options());
  EXPECT_EQ(first.cached, 0);
  for (int run_again = 0; run_again < 2; ++run_again) {
    const Answer again = run(options());
    EXPECT_EQ(again.cached, 32);
    EXPECT_EQ(again.tokens, first.tokens);
  }
}

TEST_F(KeptCacheTest, WhatDoesNotChangeTheNumbersMayChange) {
  EXPECT_EQ(found_with([](llm::Options&) {}), 32);
  EXPECT_EQ(found_with([](llm::Options& other) {
              other.max_num_seqs = 3;
              other.threads = 2;
              other.max_num_batched_tokens = 48;
              other.swap_space_bytes = 1 << 20;
            }),
            32);
}

TEST_F(KeptCacheTest, OtherSettingsFindNothing) {
  EXPECT_EQ(found_with([](llm::Options& other) { other.block_size = 32; }), 0);
  EXPECT_EQ(found_with([](llm::Options& other) { other.dtype = "bfloat16"; }), 0);
  EXPECT_EQ(found_with([](llm::Options& other) { other.kv_cache_dtype = "bfloat16"; }), 0);
  EXPECT_EQ(found_with([](llm::Options& other) { other.activation_dtype = "bf16"; }), 0);
}

TEST_F(KeptCacheTest, OneOtherBitOfTheModelFindsNothing) {
  EXPECT_EQ(found_with([this](llm::Options&) {
              for (const fs::directory_entry& entry : fs::directory_iterator(model_.path())) {
                if (entry.path().extension() != ".safetensors") continue;
                std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
                file.seekg(-4, std::ios::end);
                const char bit = static_cast<char>(file.get() ^ 1);
                file.seekp(-4, std::ios::end);
                file.put(bit);
              }
            }),
            0);
  EXPECT_EQ(found_with([this](llm::Options&) {
              std::ofstream(model_.file("config.json"), std::ios::app) << "\n";
            }),
            0);
}

TEST_F(KeptCacheTest, ADamagedBlockIsComputedAgain) {
  const Answer first = run(options());
  {
    std::fstream blocks(runner::KeptTier::blocks_file(options().kv_cache_dir),
                        std::ios::binary | std::ios::in | std::ios::out);
    blocks.seekp(40);
    blocks.put('\x55');
  }
  const Answer again = run(options());
  EXPECT_LT(again.cached, 32);
  EXPECT_EQ(again.tokens, first.tokens);
}

}  // namespace
}  // namespace quire
