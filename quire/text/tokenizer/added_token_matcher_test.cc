#include "quire/text/tokenizer/added_token_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire::text {
namespace {

AddedToken token(int32_t id, std::string content) {
  AddedToken made;
  made.id = id;
  made.content = std::move(content);
  return made;
}

/// The segments in words: text as it is, tokens as {id:covered text}.
std::string show(const std::vector<AddedToken>& tokens, std::string_view text,
                 const std::vector<ByteRange>& plain = {}) {
  std::vector<Segment> segments;
  AddedTokenMatcher(tokens).split(text, plain, segments);
  std::string shown;
  for (const Segment& segment : segments) {
    const std::string part(text.substr(segment.begin, segment.end - segment.begin));
    shown +=
        segment.id == Segment::kText ? part : "{" + std::to_string(segment.id) + ":" + part + "}";
  }
  return shown;
}

TEST(AddedTokenMatcher, TakesTheLongestAtTheLeftmostPlace) {
  const std::vector<AddedToken> tokens = {token(1, "<a>"), token(2, "<a><b>"), token(3, "a><c"),
                                          token(4, "")};
  EXPECT_EQ(show(tokens, "x<a><b><a><c"), "x{2:<a><b>}{1:<a>}<c");
  EXPECT_EQ(show(tokens, ""), "");
}

TEST(AddedTokenMatcher, StripsSpacesOnTheSidesAsked) {
  AddedToken left = token(1, "<l>");
  left.lstrip = true;
  AddedToken right = token(2, "<r>");
  right.rstrip = true;
  const std::vector<AddedToken> tokens = {left, right};
  EXPECT_EQ(show(tokens, "a \u3000\n<l> b"), "a{1: \u3000\n<l>} b");
  EXPECT_EQ(show(tokens, "a <r> \u00a0b"), "a {2:<r> \u00a0}b");
  EXPECT_EQ(show(tokens, "<r>  <l>"), "{2:<r>  }{1:<l>}");
}

TEST(AddedTokenMatcher, SpacesTakenByRstripAreNoTokens) {
  AddedToken right = token(1, "<r>");
  right.rstrip = true;
  AddedToken newline = token(2, "\n");
  newline.lstrip = true;
  newline.rstrip = true;
  EXPECT_EQ(show({right, newline}, "<r> \n\n x"), "{1:<r> \n\n }x");
  newline.rstrip = false;
  EXPECT_EQ(show({right, newline}, "<r> \n x"), "{1:<r> \n }x");
}

TEST(AddedTokenMatcher, SingleWordsStandAlone) {
  AddedToken word = token(1, "word");
  word.single_word = true;
  EXPECT_EQ(show({word}, "word word, aword words \u0967word word\u0301 word\u200d"),
            "{1:word} {1:word}, aword words \u0967word word\u0301 word\u200d");
  EXPECT_EQ(show({word}, "\xffword\xff"), "\xff{1:word}\xff");
}

TEST(AddedTokenMatcher, SkippedSpecialTokensHideWhatTheyCover) {
  AddedToken special = token(1, "<|x|>");
  special.special = true;
  const std::vector<AddedToken> tokens = {special, token(2, "x")};
  EXPECT_EQ(show(tokens, "<|x|>x"), "{1:<|x|>}{2:x}");
  EXPECT_EQ(show(tokens, "<|x|>x", {{0, 100}}), "<|x|>{2:x}");
}

TEST(AddedTokenMatcher, SpecialTokensThatTouchAPlainRangeStayText) {
  AddedToken special = token(1, "<|x|>");
  special.special = true;
  const std::vector<AddedToken> tokens = {special, token(2, "y")};
  const std::string text = "<|x|><|x|>y<|x|>";
  EXPECT_EQ(show(tokens, text), "{1:<|x|>}{1:<|x|>}{2:y}{1:<|x|>}");
  EXPECT_EQ(show(tokens, text, {{5, 10}}), "{1:<|x|>}<|x|>{2:y}{1:<|x|>}");
  EXPECT_EQ(show(tokens, text, {{0, 1}, {15, 16}}), "<|x|>{1:<|x|>}{2:y}<|x|>");
  EXPECT_EQ(show(tokens, text, {{4, 6}, {10, 11}}), "<|x|><|x|>{2:y}{1:<|x|>}");
}

TEST(AddedTokenMatcher, SpellingsAreFoundWhateverTheFlags) {
  AddedToken word = token(1, "<w>");
  word.single_word = true;
  word.lstrip = true;
  std::vector<ByteRange> ranges;
  AddedTokenMatcher(std::vector<AddedToken>{word, token(2, "<w><v>")})
      .spellings("a<w>b <w><v><w>", ranges);
  std::string shown;
  for (const ByteRange& range : ranges) {
    shown += std::to_string(range.begin) + "-" + std::to_string(range.end) + " ";
  }
  EXPECT_EQ(shown, "1-4 6-12 12-15 ");
}

}  // namespace
}  // namespace quire::text
