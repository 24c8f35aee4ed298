#include "quire/kv/block_pool.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::kv {
namespace {

using ::testing::ElementsAre;

std::vector<BlockId> acquire(BlockPool& pool, int32_t n, BlockId after = kNoBlock) {
  std::vector<BlockId> blocks;
  EXPECT_TRUE(pool.acquire(n, after, blocks));
  return blocks;
}

TEST(BlockPool, TakesAllOrNothing) {
  BlockPool pool({.num_blocks = 5});
  std::vector<BlockId> blocks;
  EXPECT_FALSE(pool.acquire(6, kNoBlock, blocks));
  EXPECT_EQ(pool.num_free(), 5);
  EXPECT_TRUE(blocks.empty());
  EXPECT_TRUE(pool.acquire(5, kNoBlock, blocks));
  EXPECT_THAT(blocks, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(pool.num_used(), 5);
  EXPECT_TRUE(pool.acquire(0, kNoBlock, blocks));
  EXPECT_FALSE(pool.check_invariants());
}

TEST(BlockPool, ABlockIsFreeWhenItsLastHolderReleasesIt) {
  BlockPool pool({.num_blocks = 2});
  const BlockId block = acquire(pool, 1)[0];
  pool.share(block);
  pool.release(block);
  EXPECT_EQ(pool.ref_count(block), 1);
  EXPECT_EQ(pool.num_free(), 1);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 2);
  EXPECT_FALSE(pool.check_invariants());
}

TEST(BlockPool, SequencesGrowInExtentsOfTheirOwn) {
  BlockPool pool({.num_blocks = 64});
  EXPECT_THAT(acquire(pool, 2), ElementsAre(0, 1));
  EXPECT_THAT(acquire(pool, 2), ElementsAre(16, 17));  // another one: not behind the first
  EXPECT_THAT(acquire(pool, 2, 1), ElementsAre(2, 3));
  EXPECT_THAT(acquire(pool, 15, 3),
              ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34));
}

TEST(BlockPool, WithoutAWholeExtentTheLastFreedGoesFirst) {
  BlockPool pool({.num_blocks = 20});
  acquire(pool, 20);
  for (const BlockId block : {9, 3, 18}) pool.release(block);
  EXPECT_THAT(acquire(pool, 3), ElementsAre(18, 3, 9));
}

TEST(BlockPool, AFreedExtentIsWholeAgain) {
  BlockPool pool({.num_blocks = 40});  // the last extent has 8 blocks
  const auto blocks = acquire(pool, 40);
  std::for_each(blocks.begin() + 32, blocks.end(), [&](BlockId b) { pool.release(b); });
  pool.release(4);
  EXPECT_THAT(acquire(pool, 2), ElementsAre(32, 33));
  EXPECT_FALSE(pool.check_invariants());
}

TEST(BlockPool, RandomUseKeepsTheBooks) {
  std::mt19937 random(7);
  for (const int32_t num_blocks : {1, 7, 16, 33, 200}) {
    BlockPool pool({.num_blocks = num_blocks});
    std::vector<BlockId> held;  // one entry per reference
    for (int i = 0; i < 3000; ++i) {
      const auto choice = random() % 4;
      if (choice == 0 || held.empty()) {
        const auto n = static_cast<int32_t>(random() % 5);
        const bool fits = n <= pool.num_free();
        EXPECT_EQ(pool.acquire(n, held.empty() ? kNoBlock : held.back(), held), fits);
      } else if (choice == 1) {
        held.push_back(held[random() % held.size()]);
        pool.share(held.back());
      } else {
        std::swap(held[random() % held.size()], held.back());
        pool.release(held.back());
        held.pop_back();
      }
      for (BlockId b = 0; b < num_blocks; ++b) {
        ASSERT_EQ(pool.ref_count(b), std::count(held.begin(), held.end(), b));
      }
      ASSERT_FALSE(pool.check_invariants()) << *pool.check_invariants();
    }
  }
}

TEST(BlockPoolDeathTest, AReleaseTooManyIsABug) {
  BlockPool pool({.num_blocks = 2});
  EXPECT_DEATH(pool.release(0), "ref_count");
  EXPECT_DEATH(pool.share(1), "ref_count");
}

}  // namespace
}  // namespace quire::kv
