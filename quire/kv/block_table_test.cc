#include "quire/kv/block_table.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::kv {
namespace {

using ::testing::ElementsAre;

TEST(BlockTable, MapsPositionsToSlots) {
  BlockPool pool({.num_blocks = 40, .block_tokens = 32});
  BlockTable other(pool);
  BlockTable table(pool);
  ASSERT_TRUE(other.append(1));
  ASSERT_TRUE(table.append(2));
  EXPECT_THAT(table.blocks(), ElementsAre(16, 17));
  EXPECT_EQ(table.slot(0), 16 * 32);
  EXPECT_EQ(table.slot(31), 16 * 32 + 31);
  EXPECT_EQ(table.slot(32), 17 * 32);
  EXPECT_EQ(table.slot(63), 17 * 32 + 31);
}

TEST(BlockTable, AppendThatDoesNotFitChangesNothing) {
  BlockPool pool({.num_blocks = 3});
  BlockTable table(pool);
  ASSERT_TRUE(table.append(2));
  EXPECT_FALSE(table.append(2));
  EXPECT_EQ(table.size(), 2);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockTable, ReleasesWhatItHolds) {
  BlockPool pool({.num_blocks = 8});
  {
    BlockTable table(pool);
    ASSERT_TRUE(table.append(3));
    BlockTable moved = std::move(table);
    EXPECT_EQ(pool.num_used(), 3);
    BlockTable target(pool);
    ASSERT_TRUE(target.append(2));
    target = std::move(moved);  // gives its own two back
    EXPECT_EQ(pool.num_used(), 3);
    EXPECT_EQ(target.size(), 3);
  }
  EXPECT_EQ(pool.num_used(), 0);
  BlockTable table(pool);
  ASSERT_TRUE(table.append(3));
  EXPECT_THAT(table.blocks(), ElementsAre(0, 1, 2));  // freed last block first, taken first first
}

TEST(BlockTable, ForksShareUntilTheyWrite) {
  BlockPool pool({.num_blocks = 8});
  BlockTable first(pool);
  ASSERT_TRUE(first.append(2));
  BlockTable second = first.fork();
  BlockTable third = first.fork();
  EXPECT_EQ(pool.num_used(), 2);
  EXPECT_EQ(pool.ref_count(1), 3);
  EXPECT_TRUE(first.is_shared(1));

  const auto copy = first.make_writable(1);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->source, 1);
  EXPECT_EQ(copy->destination, 2);
  EXPECT_THAT(first.blocks(), ElementsAre(0, 2));
  EXPECT_FALSE(first.make_writable(1));  // its own now

  ASSERT_TRUE(second.make_writable(1));
  EXPECT_FALSE(third.make_writable(1));  // the last holder keeps the block
  EXPECT_THAT(third.blocks(), ElementsAre(0, 1));
  EXPECT_EQ(pool.ref_count(0), 3);
  EXPECT_FALSE(pool.check_invariants());
}

}  // namespace
}  // namespace quire::kv
