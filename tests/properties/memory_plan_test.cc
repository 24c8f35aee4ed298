// The plan is the allocator: what is counted before loading is what is taken, for every tiny model.
#include <gtest/gtest.h>

#include <string>

#include "quire/base/error.h"
#include "quire/checkpoint/testing/temp_folder.h"
#include "quire/llm/llm.h"
#include "tests/golden/tiny_model.h"

namespace quire {
namespace {

llm::Options options_for(const std::string& folder) {
  llm::Options options;
  options.model = folder;
  options.max_num_seqs = 2;
  options.max_num_batched_tokens = 64;
  options.threads = 1;
  return options;
}

// Opening aborts when the ledger's bytes differ from the plan's (open_parts.cc).
TEST(MemoryPlan, CountedEqualsTaken) {
  for (const golden::TinyModel& model : golden::tiny_models()) {
    for (const char* dtype : {"auto", "float32", "bfloat16"}) {
      const checkpoint::testing::TempFolder folder;
      golden::write_folder(model, folder.path());
      llm::Options options = options_for(folder.path());
      options.dtype = dtype;
      const llm::MemoryReport counted = llm::count_memory(options);
      const llm::LLM opened(options);
      EXPECT_EQ(counted.weights, opened.memory().weights) << model.name << " " << dtype;
      EXPECT_EQ(counted.kv_cache, opened.memory().kv_cache) << model.name << " " << dtype;
      EXPECT_EQ(counted.arena, opened.memory().arena) << model.name << " " << dtype;
      EXPECT_EQ(counted.worker_scratch, opened.memory().worker_scratch) << model.name;
      EXPECT_EQ(counted.tokenizer, opened.memory().tokenizer) << model.name;
      EXPECT_EQ(counted.other, opened.memory().other) << model.name << " " << dtype;
      EXPECT_EQ(opened.max_model_len(), model.config.max_position);
      EXPECT_EQ(counted.num_blocks, 2 * ((model.config.max_position + 15) / 16));
    }
  }
}

TEST(MemoryPlan, TheSwapSpaceIsCountedApart) {
  const checkpoint::testing::TempFolder folder;
  golden::write_folder(golden::tiny_models().front(), folder.path());
  llm::Options options = options_for(folder.path());
  options.swap_space_bytes = 0;
  const llm::MemoryReport without = llm::count_memory(options);
  EXPECT_EQ(without.swap_space, 0);
  options.swap_space_bytes = 1 << 20;
  const checkpoint::testing::TempFolder disk;
  options.swap_dir = disk.path();
  const llm::LLM opened(options);  // aborts when the ledger differs
  EXPECT_GT(opened.memory().num_swap_blocks, 0);
  EXPECT_LE(opened.memory().swap_space, 1 << 20);
  EXPECT_EQ(opened.memory().total(), without.total());
}

TEST(MemoryPlan, KvTypeFollowsTheDtypeUnlessGiven) {
  const golden::TinyModel model = golden::tiny_models().front();  // fp32
  const checkpoint::testing::TempFolder folder;
  golden::write_folder(model, folder.path());
  const auto kv_bytes = [&folder](const char* dtype, const char* kv) {
    llm::Options options = options_for(folder.path());
    options.dtype = dtype;
    options.kv_cache_dtype = kv;
    return llm::count_memory(options).kv_cache;
  };
  const int64_t narrow = kv_bytes("bfloat16", "auto");
  EXPECT_EQ(kv_bytes("auto", "auto"), 2 * narrow);
  EXPECT_EQ(kv_bytes("float32", "auto"), 2 * narrow);
  EXPECT_EQ(kv_bytes("float32", "bfloat16"), narrow);
  EXPECT_EQ(kv_bytes("bfloat16", "float32"), 2 * narrow);
}

TEST(MemoryPlan, BadOptionsAreNamed) {
  const checkpoint::testing::TempFolder folder;
  golden::write_folder(golden::tiny_models().front(), folder.path());
  const auto error_of = [&folder](auto change) -> std::string {
    llm::Options options = options_for(folder.path());
    change(options);
    try {
      llm::count_memory(options);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto names = [](const std::string& text, const char* option) {
    return text.find(option) != std::string::npos;
  };
  EXPECT_TRUE(names(error_of([](auto& o) { o.dtype = "int3"; }), "--dtype"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.activation_dtype = "x"; }), "--activation-dtype"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.kv_cache_dtype = "fp8"; }), "--kv-cache-dtype"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.block_size = 24; }), "--block-size"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.max_num_seqs = 0; }), "--max-num-seqs"));
  EXPECT_TRUE(
      names(error_of([](auto& o) { o.max_num_batched_tokens = 0; }), "--max-num-batched-tokens"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.max_model_len = 100000; }), "--max-model-len"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.num_gpu_blocks_override = 3; }), "--max-model-len"));
  EXPECT_TRUE(
      names(error_of([](auto& o) { o.kv_cache_memory_bytes = 0; }), "--kv-cache-memory-bytes"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.preemption_mode = "x"; }), "--preemption-mode"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.target_itl_ms = -1; }), "--target-itl"));
  EXPECT_TRUE(names(error_of([](auto& o) { o.swap_space_bytes = -1; }), "--swap-space"));
}

}  // namespace
}  // namespace quire
