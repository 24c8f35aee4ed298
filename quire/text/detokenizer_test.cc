#include "quire/text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "quire/text/tokenizer/tiny_spec.h"

namespace quire::text {
namespace {

// What Python's bytes.decode("utf-8", "replace") gives.
TEST(ReplaceInvalidUtf8, FollowsPython) {
  const std::string r = "\uFFFD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plain", "plain"},
      {"\u65e5\U0001F600", "\u65e5\U0001F600"},
      {"\x80", r},
      {"\xC0\xAF", r + r},                  // overlong
      {"\xE0\x80\x80", r + r + r},          // overlong
      {"\xED\xA0\x80", r + r + r},          // surrogate
      {"\xF4\x90\x80\x80", r + r + r + r},  // past the code space
      {"\xF5", r},
      {"\xF0\x9F\x98", r},  // unfinished: one for all
      {"\xF0\x9F\x98x", r + "x"},
      {"\xE6\x97\xE6\x97\xA5", r + "\u65e5"},
      {"a\xE6", "a" + r},
      {"\xF0\x9F\x80\xC2", r + r},
  };
  for (const auto& [bytes, expected] : cases) EXPECT_EQ(replace_invalid_utf8(bytes), expected);
}

TEST(IncrementalDetokenizer, HoldsAnEmojiUntilItIsWhole) {
  const Tokenizer tokenizer(tiny_spec());
  IncrementalDetokenizer stream(tokenizer, true);
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "\U0001F600");
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.flush(), "");
}

TEST(IncrementalDetokenizer, ReplacesWhatCannotBecomeWhole) {
  const Tokenizer tokenizer(tiny_spec());
  IncrementalDetokenizer stream(tokenizer, true);
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push('x'), "\uFFFDx");
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(IncrementalDetokenizer, SkipsSpecialTokensInsideACodePoint) {
  TokenizerSpec spec = tiny_spec();
  const int32_t special = add_token(spec, "<s>", true).id;
  const Tokenizer tokenizer(spec);
  for (const bool skip : {true, false}) {
    IncrementalDetokenizer stream(tokenizer, skip);
    std::string joined;
    for (const int32_t id : {0xC3, special, 0xA9}) joined += stream.push(id);
    EXPECT_EQ(joined, skip ? "\u00e9" : "\uFFFD<s>\uFFFD");
  }
}

TEST(IncrementalDetokenizer, PushesJoinToTheWhole) {
  // Tokens of one to four bytes, many of them cut inside code points.
  const Tokenizer tokenizer(tiny_spec({{"\xF0", "\x9F"},
                                       {"\x98", "\x80"},
                                       {"\xE6", "\x97"},
                                       {"\xF0\x9F", "\x98\x80"},
                                       {"\xA5", "a"},
                                       {"a", "\xC3"}}));
  std::mt19937 random(7);
  const std::string bytes = "\xF0\x9F\x98\x80\xE6\x97\xA5\xC3\xA9 a\xFF\xED\xA0\xC0";
  for (int round = 0; round < 5000; ++round) {
    for (const bool skip : {false, true}) {
      IncrementalDetokenizer stream(tokenizer, skip);
      std::vector<int32_t> ids(random() % 12);
      std::string joined;
      for (int32_t& id : ids) {
        id = random() % 3 == 0 ? 256 + static_cast<int32_t>(random() % 6)
                               : static_cast<uint8_t>(bytes[random() % bytes.size()]);
        const std::string part = stream.push(id);
        EXPECT_EQ(replace_invalid_utf8(part), part) << "ends inside a code point";
        joined += part;
      }
      joined += stream.flush();
      ASSERT_EQ(joined, replace_invalid_utf8(tokenizer.decode(ids, skip)));
    }
  }
}

}  // namespace
}  // namespace quire::text
