#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/kv/block_pool.h"

namespace quire::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSeed = 5;
using Tokens = std::array<int32_t, 2>;

const BlockHash kRoot = root_hash(kSeed, {});
Tokens tokens_of(int32_t content) {
  return {content, content};
}
BlockHash hash_of(int32_t content) {
  return block_hash(kSeed, kRoot, tokens_of(content));
}
BlockId find(const BlockPool& pool, int32_t content) {
  return pool.find(hash_of(content), kRoot, tokens_of(content));
}

class SecondTier : public ::testing::Test {
 protected:
  SecondTier() { pool_.set_tier(tier_); }
  ~SecondTier() override {
    EXPECT_FALSE(pool_.check_invariants());
    EXPECT_FALSE(tier_.check_invariants());
  }

  /// Leaves blocks with this content cached, the first one used longest ago.
  void cache(const std::vector<int32_t>& contents) {
    std::vector<BlockId> blocks;
    ASSERT_TRUE(pool_.acquire(static_cast<int32_t>(contents.size()), kNoBlock, blocks));
    for (size_t i = 0; i < blocks.size(); ++i) {
      pool_.publish(blocks[i], hash_of(contents[i]), kRoot, tokens_of(contents[i]));
    }
    for (const BlockId block : blocks) pool_.release(block);
  }
  std::vector<BlockId> take(int32_t n) {
    std::vector<BlockId> blocks;
    EXPECT_TRUE(pool_.acquire(n, kNoBlock, blocks));
    return blocks;
  }
  /// Contents that the tier has cached, the one to go next first.
  std::vector<int32_t> kept() const {
    std::vector<int32_t> contents;
    tier_.for_each_cached([&](BlockId, const BlockHash&, const BlockHash&,
                              std::span<const int32_t> tokens) { contents.push_back(tokens[0]); });
    return contents;
  }

  BlockPool tier_{{.num_blocks = 2, .block_tokens = 2}};
  BlockPool pool_{{.num_blocks = 4, .block_tokens = 2}};
};

TEST_F(SecondTier, KeepsWhatIsTakenForSomethingElse) {
  cache({10, 11, 12});
  take(2);  // one that holds nothing, then the one used longest ago
  ASSERT_EQ(pool_.moved().size(), 1u);
  EXPECT_EQ(pool_.moved()[0].source, 0);
  EXPECT_EQ(pool_.moved()[0].destination, find(tier_, 10));
  EXPECT_EQ(find(pool_, 10), kNoBlock);
  EXPECT_THAT(kept(), ElementsAre(10));
  EXPECT_EQ(tier_.num_used(), 0);
  pool_.clear_moved();
  EXPECT_THAT(pool_.moved(), IsEmpty());
}

TEST_F(SecondTier, LosesWhatWasUsedLongestAgo) {
  cache({10, 11, 12});
  const auto taken = take(4);
  EXPECT_EQ(pool_.moved().size(), 3u);
  EXPECT_THAT(kept(), ElementsAre(11, 12));
  EXPECT_EQ(tier_.num_evictions(), 1);
}

TEST_F(SecondTier, DoesNotCopyWhatItHas) {
  cache({10});
  auto taken = take(4);
  for (const BlockId block : taken) pool_.release(block);
  cache({11});
  take(4);
  pool_.clear_moved();
  EXPECT_THAT(kept(), ElementsAre(10, 11));
}

TEST_F(SecondTier, UsedAgainItLastsLonger) {
  cache({10});
  for (const BlockId block : take(4)) pool_.release(block);
  cache({11});
  for (const BlockId block : take(4)) pool_.release(block);
  EXPECT_THAT(kept(), ElementsAre(10, 11));
  cache({10});  // computed again
  pool_.clear_moved();
  take(4);
  EXPECT_THAT(pool_.moved(), IsEmpty());
  EXPECT_THAT(kept(), ElementsAre(11, 10));
}

TEST_F(SecondTier, ForgetsWhereAllIsHeld) {
  std::vector<BlockId> held;
  ASSERT_TRUE(tier_.acquire(2, kNoBlock, held));
  cache({10});
  take(4);
  EXPECT_THAT(pool_.moved(), IsEmpty());
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(SecondTier, IsFilledWithTheLastUsed) {
  cache({10, 11, 12});
  pool_.fill_tier();
  EXPECT_THAT(kept(), ElementsAre(11, 12));
  EXPECT_EQ(pool_.moved().size(), 2u);
  EXPECT_EQ(pool_.num_published(), 3);  // they are copied, not moved
  pool_.clear_moved();
  pool_.fill_tier();
  EXPECT_THAT(pool_.moved(), IsEmpty());
}

TEST_F(SecondTier, IsRestoredOnlyWhereItIsFree) {
  EXPECT_TRUE(tier_.restore(1, hash_of(10), kRoot, tokens_of(10)));
  EXPECT_FALSE(tier_.restore(1, hash_of(11), kRoot, tokens_of(11)));  // taken
  EXPECT_FALSE(tier_.restore(0, hash_of(10), kRoot, tokens_of(10)));  // there already
  EXPECT_FALSE(tier_.restore(2, hash_of(12), kRoot, tokens_of(12)));  // no such block
  EXPECT_FALSE(tier_.restore(-1, hash_of(12), kRoot, tokens_of(12)));
  EXPECT_EQ(find(tier_, 10), 1);
  EXPECT_EQ(tier_.num_free(), 2);
}

}  // namespace
}  // namespace quire::kv
