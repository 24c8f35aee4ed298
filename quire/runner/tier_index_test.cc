#include "quire/runner/tier_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace quire::runner {
namespace {

TierIndex sample_index() {
  TierIndex index{.key = "model 12 avx2", .cache_seed = 77, .block_tokens = 4, .block_bytes = 640};
  for (int32_t i = 0; i < 5; ++i) {
    const auto number = static_cast<uint64_t>(i);
    index.entries.push_back({.block = 10 - i,
                             .hash = {number, 100 + number},
                             .parent = {number + 1, 7},
                             .tokens = {i, i + 1, i + 2, 1000000 + i},
                             .checksum = number * 12345});
  }
  return index;
}

std::optional<TierIndex> decode(const std::string& bytes) {
  std::string why;
  std::optional<TierIndex> index = decode_tier_index(std::as_bytes(std::span(bytes)), why);
  EXPECT_EQ(index.has_value(), why.empty());
  return index;
}

/// Puts the right checksum behind what was changed.
std::string sealed(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  const uint64_t checksum = checksum_of(std::as_bytes(std::span(bytes)));
  bytes.append(reinterpret_cast<const char*>(&checksum), 8);
  return bytes;
}

TEST(TierIndex, ComesBackAsItWas) {
  const TierIndex index = sample_index();
  const std::optional<TierIndex> read = decode(encode_tier_index(index));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key, index.key);
  EXPECT_EQ(read->cache_seed, 77u);
  EXPECT_EQ(read->block_tokens, 4);
  EXPECT_EQ(read->block_bytes, 640);
  ASSERT_EQ(read->entries.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(read->entries[i].block, index.entries[i].block);
    EXPECT_EQ(read->entries[i].hash, index.entries[i].hash);
    EXPECT_EQ(read->entries[i].parent, index.entries[i].parent);
    EXPECT_EQ(read->entries[i].tokens, index.entries[i].tokens);
    EXPECT_EQ(read->entries[i].checksum, index.entries[i].checksum);
  }
  EXPECT_TRUE(decode(encode_tier_index({.block_tokens = 1})));  // an empty one
}

TEST(TierIndex, AnyFlippedBitAndAnyOtherLengthIsRefused) {
  const std::string good = encode_tier_index(sample_index());
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(decode(good.substr(0, size)));
  EXPECT_FALSE(decode(good + '\0'));
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode(bad)) << bit;
  }
}

TEST(TierIndex, AnotherVersionIsRefusedAndNamed) {
  std::string bytes = encode_tier_index(sample_index());
  bytes[8] = 2;
  bytes = sealed(std::move(bytes));
  std::string why;
  EXPECT_FALSE(decode_tier_index(std::as_bytes(std::span(bytes)), why));
  EXPECT_NE(why.find("version"), std::string::npos);
}

// What a checksum does not catch: bytes that were wrong when they were written.
TEST(TierIndex, NothingThatFitsItsChecksumIsTrustedWithSizes) {
  const std::string good = encode_tier_index(sample_index());
  std::mt19937 random(5);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (uint32_t change = 0; change <= random() % 4; ++change) {
      const char values[] = {0, 1, -1, 127, static_cast<char>(random())};
      bad[12 + random() % (bad.size() - 20)] = values[random() % 5];
    }
    if (random() % 4 == 0) bad.resize(20 + random() % (bad.size() - 20));
    const std::optional<TierIndex> index = decode(sealed(bad));
    if (!index) continue;
    ++accepted;
    for (const TierEntry& entry : index->entries) {
      EXPECT_EQ(entry.tokens.size(), static_cast<size_t>(index->block_tokens));
      EXPECT_GE(entry.block, 0);
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20000);
}

TEST(TierIndex, NoBlockIsNamedTwice) {
  TierIndex index = sample_index();
  index.entries[3].block = index.entries[1].block;
  EXPECT_FALSE(decode(encode_tier_index(index)));
}

}  // namespace
}  // namespace quire::runner
