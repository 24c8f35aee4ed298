#include "quire/bench/kv_waste.h"

#include <gtest/gtest.h>

namespace quire::bench {
namespace {

// One request of 3 prompt and 4 output tokens; the last one is never stored, so the steps hold
// 3, 4, 5, 6 tokens.
TEST(KvWaste, CountsByHand) {
  const std::vector<LengthPair> one = {{3, 4}};
  KvWasteOptions options{.block_tokens = 4, .pool_tokens = 16, .max_model_len = 16};
  const KvWaste paged = simulate_kv_waste(one, options);
  EXPECT_EQ(paged.num_steps, 4);
  EXPECT_DOUBLE_EQ(paged.filled, 3 + 4 + 5 + 6);
  EXPECT_DOUBLE_EQ(paged.allocated, 4 + 4 + 8 + 8);
  EXPECT_DOUBLE_EQ(paged.share(), 0.25);
  EXPECT_DOUBLE_EQ(paged.mean_running, 1);
  const KvWaste contiguous = simulate_contiguous(one, options);
  EXPECT_DOUBLE_EQ(contiguous.filled, 3 + 4 + 5 + 6);
  EXPECT_DOUBLE_EQ(contiguous.allocated, 4 * 16);
  EXPECT_EQ(contiguous.num_requests, 1);
}

TEST(KvWaste, BlocksOfOneTokenWasteNothing) {
  const std::vector<LengthPair> lengths(20, LengthPair{5, 9});
  const KvWaste waste = simulate_kv_waste(
      lengths, {.block_tokens = 1, .pool_tokens = 64, .max_model_len = 32, .max_num_seqs = 8});
  EXPECT_DOUBLE_EQ(waste.share(), 0);
  EXPECT_EQ(waste.num_requests, 20);
  EXPECT_GT(waste.num_preemptions, 0);
}

TEST(KvWaste, PagingWastesLittleOfTheCommittedLengths) {
  auto lengths = parse_lengths(sharegpt_like_lengths(), "committed");
  lengths.resize(200);
  const double paged = simulate_kv_waste(lengths, {.block_tokens = 16}).share();
  EXPECT_GT(paged, 0);
  EXPECT_LT(paged, 0.04);
  const KvWaste contiguous = simulate_contiguous(lengths, {});
  EXPECT_GT(contiguous.share(), 0.5);
  // 16,384 slots hold 8 slabs of 2,048; fewer run only at the end.
  EXPECT_LE(contiguous.mean_running, 8);
  EXPECT_GT(contiguous.mean_running, 7);
}

}  // namespace
}  // namespace quire::bench
