#include "quire/llm/swap_sizing.h"

#include <gtest/gtest.h>

#include <string>

#include "quire/base/error.h"

namespace quire::llm {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

SwapDemand demand() {
  return {.block_bytes = kMiB, .other_bytes = 5 * kGiB, .available_bytes = 100 * kGiB};
}

std::string error_of(const Options& options) {
  try {
    size_swap(options, demand());
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(SwapSizing, FourGibibytesUnlessSaid) {
  Options options;
  EXPECT_EQ(size_swap(options, demand()).num_blocks, 4096);
  EXPECT_EQ(size_swap(options, demand()).notice, "");
  options.swap_space_bytes = 10 * kMiB + 5;
  EXPECT_EQ(size_swap(options, demand()).num_blocks, 10);
  options.swap_space_bytes = 0;
  EXPECT_EQ(size_swap(options, demand()).num_blocks, 0);
}

TEST(SwapSizing, TheDefaultShrinksToWhatMemoryLeavesAndSaysSo) {
  Options options;
  options.gpu_memory_utilization = 0.5;
  SwapDemand tight = demand();
  tight.available_bytes = 12 * kGiB;  // half of it, less 5 GiB
  EXPECT_EQ(size_swap(options, tight).num_blocks, 1024);
  EXPECT_TRUE(has(size_swap(options, tight).notice, "--swap-dir"));
  tight.available_bytes = kGiB;
  EXPECT_EQ(size_swap(options, tight).num_blocks, 0);
  tight.available_bytes = 0;  // unknown
  EXPECT_EQ(size_swap(options, tight).num_blocks, 4096);
}

TEST(SwapSizing, WhatIsAskedForIsGivenWithAWarning) {
  Options options;
  options.swap_space_bytes = 200 * kGiB;
  EXPECT_EQ(size_swap(options, demand()).num_blocks, 200 * 1024);
  EXPECT_TRUE(has(size_swap(options, demand()).notice, "--swap-dir"));
  options.swap_dir = "/somewhere";
  EXPECT_EQ(size_swap(options, demand()).notice, "");
}

TEST(SwapSizing, TheDefaultOfSmallModelsIsBoundedByBlocks) {
  SwapDemand small = demand();
  small.block_bytes = 1024;
  EXPECT_EQ(size_swap({}, small).num_blocks, kMaxDefaultSwapBlocks);
}

TEST(SwapSizing, ContradictionsAreNamed) {
  Options options;
  options.swap_space_bytes = -1;
  EXPECT_TRUE(has(error_of(options), "--swap-space"));
  options.swap_space_bytes = 1000;  // less than a block
  EXPECT_TRUE(has(error_of(options), "1.00 MiB"));
  options.swap_space_bytes = 0;
  EXPECT_EQ(error_of(options), "no error");
  options.preemption_mode = "swap";
  EXPECT_TRUE(has(error_of(options), "--preemption-mode swap"));
  options.preemption_mode = "auto";
  options.kv_cache_dir = "/a";
  EXPECT_TRUE(has(error_of(options), "--kv-cache-dir"));
  options.swap_space_bytes = {};
  EXPECT_EQ(error_of(options), "no error");
  options.swap_dir = "/b";
  EXPECT_TRUE(has(error_of(options), "both"));
  options.swap_dir = "";
  options.enable_prefix_caching = false;
  EXPECT_TRUE(has(error_of(options), "--no-enable-prefix-caching"));
}

TEST(SwapSizing, DisksAreTakenToBeSlower) {
  EXPECT_EQ(swap_block_ns(2'000'000, false), 1'000'000);
  EXPECT_EQ(swap_block_ns(2'000'000, true), 4'000'000);
}

}  // namespace
}  // namespace quire::llm
