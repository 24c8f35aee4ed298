#include <array>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/kv/block_hash.h"
#include "quire/kv/block_pool.h"
#include "quire/kv/hash_set.h"

namespace quire::kv {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSeed = 17;
using Tokens = std::array<int32_t, 4>;

BlockPool make_pool(int32_t num_blocks, int32_t hash_bits = 64) {
  return BlockPool({.num_blocks = num_blocks, .block_tokens = 4, .hash_bits = hash_bits});
}

std::vector<BlockId> acquire(BlockPool& pool, int32_t n, BlockId after = kNoBlock) {
  std::vector<BlockId> blocks;
  EXPECT_TRUE(pool.acquire(n, after, blocks));
  return blocks;
}

TEST(BlockHash, DependsOnAllOfItsInputs) {
  const BlockHash root = root_hash(kSeed, {});
  const Tokens tokens = {1, 2, 3, 4};
  const BlockHash hash = block_hash(kSeed, root, tokens);
  EXPECT_EQ(hash, block_hash(kSeed, root, tokens));
  EXPECT_NE(hash, block_hash(kSeed + 1, root, tokens));
  EXPECT_NE(hash, block_hash(kSeed, hash, tokens));
  EXPECT_NE(hash, block_hash(kSeed, root, Tokens{1, 2, 3, 5}));
  EXPECT_NE(root, root_hash(kSeed, {.salt = "a"}));
  EXPECT_NE(root_hash(kSeed, {.salt = "a"}), root_hash(kSeed, {.adapter = "a"}));
  EXPECT_NE(root_hash(kSeed, {.salt = "ab", .adapter = "c"}),
            root_hash(kSeed, {.salt = "a", .adapter = "bc"}));
  EXPECT_NE(root, root_hash(kSeed, {.numbers = 1}));
}

TEST(PrefixCache, FreedPublishedBlocksLastLongest) {
  BlockPool pool = make_pool(20);
  const auto blocks = acquire(pool, 20);
  const BlockHash root = root_hash(kSeed, {});
  for (const BlockId block : {5, 9, 2}) {
    const Tokens tokens = {block, 0, 0, 0};
    EXPECT_TRUE(pool.publish(block, block_hash(kSeed, root, tokens), root, tokens));
  }
  for (const BlockId block : {9, 2, 7, 5, 8}) pool.release(block);
  EXPECT_FALSE(pool.check_invariants());
  EXPECT_EQ(pool.num_free(), 5);
  const Tokens two = {2, 0, 0, 0};
  EXPECT_EQ(pool.find(block_hash(kSeed, root, two), root, two), 2);
  pool.share(2);  // a hit takes it out of the middle of the list
  EXPECT_EQ(pool.ref_count(2), 1);
  EXPECT_THAT(acquire(pool, 3), ElementsAre(8, 7, 9));  // without content, then the longest unused
  EXPECT_EQ(pool.num_evictions(), 1);
  EXPECT_FALSE(pool.is_published(9));
  EXPECT_TRUE(pool.is_published(5));
  EXPECT_FALSE(pool.check_invariants());
}

TEST(PrefixCache, ExtentsAreTakenOnlyWhereNothingIsCached) {
  BlockPool pool = make_pool(48);
  auto blocks = acquire(pool, 17);  // 0..15 and 16
  const BlockHash root = root_hash(kSeed, {});
  const Tokens tokens = {1, 1, 1, 1};
  pool.publish(3, block_hash(kSeed, root, tokens), root, tokens);
  while (!blocks.empty()) {
    pool.release(blocks.back());
    blocks.pop_back();
  }
  EXPECT_THAT(acquire(pool, 2), ElementsAre(16, 17));
  EXPECT_THAT(acquire(pool, 1), ElementsAre(32));
  EXPECT_THAT(acquire(pool, 5), ElementsAre(0, 1, 2, 4, 5));  // 3 is cached
  EXPECT_FALSE(pool.check_invariants());
}

TEST(PrefixCache, OneBlockPerHash) {
  BlockPool pool = make_pool(3);
  acquire(pool, 2);
  const BlockHash root = root_hash(kSeed, {});
  const Tokens tokens = {1, 2, 3, 4};
  const BlockHash hash = block_hash(kSeed, root, tokens);
  EXPECT_EQ(pool.find(hash, root, tokens), kNoBlock);
  EXPECT_TRUE(pool.publish(0, hash, root, tokens));
  EXPECT_FALSE(pool.publish(1, hash, root, tokens));
  EXPECT_EQ(pool.find(hash, root, tokens), 0);
  EXPECT_EQ(pool.find(hash, hash, tokens), kNoBlock);  // the same name, another parent
  EXPECT_EQ(pool.find(hash, root, Tokens{1, 2, 3, 5}), kNoBlock);
}

/// With hashes of 3 bits nearly every name is taken by something else: what is found is still what
/// was looked for.
TEST(PrefixCache, CollisionsAreMisses) {
  std::mt19937 random(3);
  for (const int32_t bits : {0, 3, 8}) {
    BlockPool pool = make_pool(64, bits);
    std::vector<BlockId> held;
    int found = 0;
    int refused = 0;
    for (int i = 0; i < 5000; ++i) {
      const BlockHash root = root_hash(kSeed, {.salt = random() % 2 == 0 ? "a" : "b"});
      const Tokens tokens = {static_cast<int32_t>(random() % 12), 0, 0, 0};
      const BlockHash hash = block_hash(kSeed, root, tokens);
      const BlockId hit = pool.find(hash, root, tokens);
      if (hit != kNoBlock) {
        ++found;
        pool.share(hit);
        pool.release(hit);
      } else {
        const BlockId block = acquire(pool, 1)[0];
        if (!pool.publish(block, hash, root, tokens)) ++refused;
        EXPECT_TRUE(pool.find(hash, root, tokens) == block || !pool.is_published(block));
        pool.release(block);
      }
      ASSERT_FALSE(pool.check_invariants()) << *pool.check_invariants();
    }
    EXPECT_GT(found, 50);
    EXPECT_GT(refused, bits == 8 ? 0 : 1000);
  }
}

TEST(HashSet, ForgetsAtOnce) {
  HashSet set(2);
  const auto hash = [](uint64_t low) { return BlockHash{.low = low, .high = 1}; };
  EXPECT_FALSE(set.contains(hash(1)));
  set.insert(hash(1));
  set.insert(hash(9));  // the same place
  set.insert(hash(9));
  set.insert(hash(3));  // more than it holds
  EXPECT_TRUE(set.contains(hash(1)));
  EXPECT_TRUE(set.contains(hash(9)));
  EXPECT_FALSE(set.contains(hash(3)));
  EXPECT_FALSE(set.contains(hash(17)));
  set.clear();
  EXPECT_FALSE(set.contains(hash(1)));
}

}  // namespace
}  // namespace quire::kv
