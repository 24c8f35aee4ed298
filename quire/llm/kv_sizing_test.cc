#include "quire/llm/kv_sizing.h"

#include <gtest/gtest.h>

#include <string>

#include "quire/base/error.h"
#include "quire/llm/memory_report.h"

namespace quire::llm {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

KvDemand demand() {
  return {.block_bytes = kMiB,
          .block_tokens = 16,
          .model_max_len = 2048,
          .fixed_bytes = kGiB,
          .available_bytes = 100 * kGiB};
}

std::string error_of(const Options& options, const KvDemand& asked) {
  try {
    size_kv(options, asked);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

TEST(KvSizing, WhatAllSequencesNeed) {
  Options options;
  options.max_num_seqs = 4;
  const KvSize size = size_kv(options, demand());
  EXPECT_EQ(size.num_blocks, 4 * 128);
  EXPECT_EQ(size.max_model_len, 2048);
  options.max_model_len = 100;
  EXPECT_EQ(size_kv(options, demand()).num_blocks, 4 * 7);  // whole blocks
}

TEST(KvSizing, AtMostFourGibibytes) {
  Options options;
  options.max_num_seqs = 128;
  EXPECT_EQ(size_kv(options, demand()).num_blocks, 4096);
  KvDemand unknown = demand();
  unknown.available_bytes = 0;
  EXPECT_EQ(size_kv(options, unknown).num_blocks, 4096);
}

TEST(KvSizing, AtMostItsShareOfWhatIsAvailable) {
  Options options;
  options.gpu_memory_utilization = 0.5;
  KvDemand small = demand();
  small.available_bytes = 4 * kGiB;
  EXPECT_EQ(size_kv(options, small).num_blocks, 1024);  // half of 4 GiB, less 1 GiB
}

TEST(KvSizing, OverridesInTheirOrder) {
  Options options;
  options.kv_cache_memory_bytes = 300 * kMiB + 5;
  EXPECT_EQ(size_kv(options, demand()).num_blocks, 300);
  options.num_gpu_blocks_override = 200;
  EXPECT_EQ(size_kv(options, demand()).num_blocks, 200);
}

TEST(KvSizing, RefusesWhatHoldsNoWholeSequenceAndSaysWhatFits) {
  Options options;
  options.num_gpu_blocks_override = 127;
  EXPECT_NE(error_of(options, demand()).find("at most 2032"), std::string::npos);
  options.max_model_len = 2032;
  EXPECT_EQ(size_kv(options, demand()).max_model_len, 2032);
  options.max_model_len = Options::kLongestThatFits;
  EXPECT_EQ(size_kv(options, demand()).max_model_len, 2032);
}

TEST(KvSizing, RefusesMoreThanTheModelCan) {
  Options options;
  options.max_model_len = 2049;
  EXPECT_NE(error_of(options, demand()).find("2048"), std::string::npos);
  options.max_model_len = 0;
  EXPECT_NE(error_of(options, demand()).find("--max-model-len"), std::string::npos);
}

TEST(KvSizing, RefusesWeightsThatDoNotFit) {
  KvDemand large = demand();
  large.fixed_bytes = 91 * kGiB;
  const std::string error = error_of({}, large);
  // What is needed, what there is, and what to change.
  for (const char* part : {"91.0 GiB", "100 GiB", "90.0 GiB", "--gpu-memory-utilization to 0.92",
                           "--max-num-batched-tokens (2048)", "--max-num-seqs (128)"}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  }
  Options advised;
  advised.gpu_memory_utilization = 0.92;
  EXPECT_EQ(error_of(advised, large).find("--gpu-memory-utilization to"), std::string::npos);
  large.fixed_bytes = 101 * kGiB;
  EXPECT_EQ(error_of({}, large).find("--gpu-memory-utilization to"), std::string::npos);
}

TEST(KvSizing, RefusesAPoolThatIsNotThereAndSaysWhatFits) {
  KvDemand small = demand();
  small.available_bytes = 3 * kGiB;
  Options bytes;
  bytes.kv_cache_memory_bytes = 3 * kGiB;
  std::string error = error_of(bytes, small);
  for (const char* part : {"--kv-cache-memory-bytes", "4.00 GiB", "3.00 GiB", "1.00 GiB",
                           "at most 2147483648 bytes"}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  }
  bytes.kv_cache_memory_bytes = 2147483648;
  EXPECT_EQ(size_kv(bytes, small).num_blocks, 2048);
  Options blocks;
  blocks.num_gpu_blocks_override = 2049;
  error = error_of(blocks, small);
  EXPECT_NE(error.find("--num-gpu-blocks-override"), std::string::npos) << error;
  EXPECT_NE(error.find("at most 2048 blocks"), std::string::npos) << error;
  blocks.num_gpu_blocks_override = 2048;
  EXPECT_EQ(size_kv(blocks, small).num_blocks, 2048);
  small.available_bytes = 0;  // not known: nothing to refuse by
  blocks.num_gpu_blocks_override = 5000;
  EXPECT_EQ(size_kv(blocks, small).num_blocks, 5000);
}

TEST(KvSizing, RefusesAShareThatIsNone) {
  for (const double share : {0.0, -0.1, 1.1}) {
    Options options;
    options.gpu_memory_utilization = share;
    EXPECT_NE(error_of(options, demand()).find("--gpu-memory-utilization"), std::string::npos);
  }
}

TEST(MemoryReport, BytesForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "0.98 KiB");
  EXPECT_EQ(format_bytes(98362432), "93.8 MiB");
  EXPECT_EQ(format_bytes(kGiB + kGiB / 2), "1.50 GiB");
  EXPECT_EQ(format_bytes(1023 * kMiB), "1.00 GiB");
}

TEST(MemoryReport, NamesEveryPart) {
  const MemoryReport report{.weights = 90 * kMiB,
                            .kv_cache = kGiB,
                            .arena = 5 * kMiB,
                            .other = kMiB,
                            .available = 8 * kGiB,
                            .num_blocks = 256,
                            .block_tokens = 16,
                            .max_model_len = 2048,
                            .max_num_seqs = 2};
  const std::string text = format_report(report);
  for (const char* part : {"90.0 MiB", "1.00 GiB", "5.00 MiB", "1.09 GiB", "of 8.00 GiB",
                           "4096 tokens in 256 blocks of 16: 2.0 sequences of 2048"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace quire::llm
