#include "quire/runner/kept_tier.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>

#include "quire/base/error.h"
#include "quire/base/testing/temp_folder.h"

namespace quire::runner {
namespace {

constexpr int32_t kBlockTokens = 16;

class KeptTierTest : public testing::Test {
 protected:
  SwapSpace::Options swap_options(int64_t num_blocks = 8) const {
    return {.groups = {{.num_layers = 2, .num_kv_heads = 1, .head_dim = 16}},
            .num_blocks = num_blocks,
            .file = KeptTier::blocks_file(folder_.path())};
  }
  KeptTier::Options options(const std::string& key = "the model") const {
    return {.folder = folder_.path(), .key = key, .block_tokens = kBlockTokens};
  }
  static std::vector<int32_t> tokens(int32_t block) {
    std::vector<int32_t> made(kBlockTokens);
    for (int32_t i = 0; i < kBlockTokens; ++i) made[static_cast<size_t>(i)] = 100 * block + i;
    return made;
  }
  /// Leaves blocks 2, 3 and 5 in the folder, as a process does that ends.
  void keep_three() const {
    SwapSpace swap(swap_options());
    KeptTier tier(options(), swap);
    for (const int32_t block : {2, 3, 5}) {
      swap.reserve(block);
      std::memset(swap.data() + block * swap.block_bytes(), block,
                  static_cast<size_t>(swap.block_bytes()));
      tier.add(block, {.low = static_cast<uint64_t>(block)}, {.high = 9}, tokens(block));
    }
    tier.write(1234);
  }
  /// What the next process finds, by block; each is checked to be what was kept.
  std::map<int32_t, uint64_t> found(const std::string& key = "the model",
                                    int64_t num_blocks = 8) const {
    const SwapSpace swap(swap_options(num_blocks));
    KeptTier tier(options(key), swap);
    EXPECT_FALSE(std::filesystem::exists(KeptTier::index_file(folder_.path())));
    EXPECT_EQ(tier.cache_seed(),
              tier.num_restored() > 0 ? std::optional<uint64_t>(1234) : std::nullopt);
    std::map<int32_t, uint64_t> blocks;
    tier.restore([&](int32_t block, const kv::BlockHash& hash, const kv::BlockHash& parent,
                     std::span<const int32_t> held) {
      EXPECT_EQ(hash.low, static_cast<uint64_t>(block));
      EXPECT_EQ(parent.high, 9u);
      EXPECT_EQ((std::vector<int32_t>(held.begin(), held.end())), tokens(block));
      EXPECT_EQ(swap.block(block).front(), static_cast<std::byte>(block));
      EXPECT_EQ(swap.block(block).back(), static_cast<std::byte>(block));
      blocks[block] = hash.low;
    });
    return blocks;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void overwrite(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }
  std::string index_path() const { return KeptTier::index_file(folder_.path()); }

  const TempFolder folder_;
};

TEST_F(KeptTierTest, BlocksAreFoundAgainOnce) {
  EXPECT_TRUE(found().empty());
  keep_three();
  struct stat info {};
  ASSERT_EQ(stat(index_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(found().size(), 3u);
  EXPECT_TRUE(found().empty());  // as after a crash: the index was removed when it was read
}

TEST_F(KeptTierTest, WhatAnotherKeyMadeIsNotUsed) {
  keep_three();
  EXPECT_TRUE(found("another model").empty());
}

TEST_F(KeptTierTest, DamagedAndMissingBlocksAreLeftOut) {
  keep_three();
  {
    std::fstream blocks(KeptTier::blocks_file(folder_.path()),
                        std::ios::binary | std::ios::in | std::ios::out);
    blocks.seekp(3 * 2048 + 777);
    blocks.put('\0');
  }
  EXPECT_EQ(found(), (std::map<int32_t, uint64_t>{{2, 2}, {5, 5}}));
  keep_three();
  EXPECT_EQ(found("the model", 4), (std::map<int32_t, uint64_t>{{2, 2}, {3, 3}}));
}

TEST_F(KeptTierTest, NoDamageToTheIndexIsEverTrusted) {
  keep_three();
  const std::string good = read(index_path());
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    if (round % 3 == 0) {
      bad.resize(random() % good.size());
    } else {
      bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    }
    overwrite(index_path(), bad);
    EXPECT_TRUE(found().empty()) << round;
  }
  overwrite(index_path(), good);
  EXPECT_EQ(found().size(), 3u);
}

TEST_F(KeptTierTest, AFolderThatCannotBeIsNamed) {
  overwrite(folder_.file("plain"), "x");
  try {
    KeptTier::make_folder(folder_.file("plain") + "/below");
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_NE(std::string(error.what()).find("plain/below"), std::string::npos);
  }
  KeptTier::make_folder(folder_.file("a/b"));
  EXPECT_TRUE(std::filesystem::is_directory(folder_.file("a/b")));
}

}  // namespace
}  // namespace quire::runner
