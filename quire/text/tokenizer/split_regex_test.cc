#include "quire/text/tokenizer/split_regex.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quire/base/error.h"

namespace quire::text {
namespace {

std::vector<std::string> matches(const std::string& pattern, std::string_view text) {
  const SplitRegex regex(pattern);
  std::vector<Piece> found;
  SplitRegex::Matcher(regex).find_all(text, 0, found);
  std::vector<std::string> parts;
  for (const Piece& piece : found)
    parts.emplace_back(text.substr(piece.begin, piece.end - piece.begin));
  return parts;
}

using Parts = std::vector<std::string>;

TEST(SplitRegex, ReadsOniguramasDialect) {
  EXPECT_EQ(translate_pattern(R"(\h[\h_]\H)"), "[0-9a-fA-F][0-9a-fA-F_][^0-9a-fA-F]");
  EXPECT_EQ(translate_pattern(R"((?m:.)(?i)(?<name>x)(?=y))"), "(?s:.)(?i)(?<name>x)(?=y)");
  EXPECT_EQ(translate_pattern(R"([]\]a]\p{Lu}+[[:alpha:]])"), R"([]\]a]\p{Lu}+[[:alpha:]])");
  EXPECT_EQ(matches(R"(\w+)", "e\u0301_1\u00bd"), Parts{"e\u0301_1"});
  EXPECT_EQ(matches("^x|y$", "x\nx y\ny"), (Parts{"x", "x", "y", "y"}));
  EXPECT_EQ(matches(".", "a\r\n"), (Parts{"a", "\r"}));
}

TEST(SplitRegex, RefusesWhatItWouldMisread) {
  for (const char* const pattern : {"(", "a{1,2}+", "[a[b]]", "[a&&b]", R"([\W])", R"(\C)"}) {
    EXPECT_THROW(SplitRegex{pattern}, LoadError) << pattern;
  }
  EXPECT_THROW(SplitRegex{std::string(1 << 17, 'a')}, LoadError);
  EXPECT_THROW(SplitRegex{std::string(1000, '(')}, LoadError);
}

TEST(SplitRegex, HasTheClassesOfUnicode16) {
  EXPECT_EQ(matches(R"(\p{Lu}+)", "A\u1c89\ua7cb"), Parts{"A\u1c89\ua7cb"});
  EXPECT_EQ(matches(R"(\p{N}+)", "1\U00010d40"), Parts{"1\U00010d40"});
  EXPECT_EQ(matches(R"(\p{Han}+)", "\U0002ebf0"), Parts{"\U0002ebf0"});
  EXPECT_EQ(matches(R"(\s+)", "a\u180e\u3000b"), Parts{"\u3000"});
}

TEST(SplitRegex, StepsOverEmptyMatches) {
  EXPECT_EQ(matches("x*", "axxb"), (Parts{"", "xx", ""}));
  EXPECT_EQ(matches("(?=\u65e5)", "\u65e5\u65e5"), (Parts{"", ""}));
}

TEST(SplitRegex, BytesThatAreNoTextMatchNoLetter) {
  EXPECT_EQ(matches(R"(\p{L}+)", "a\xff\xe6\x97z"), (Parts{"a", "z"}));
}

TEST(SplitRegex, DeepBacktrackingEndsWithoutCrash) {
  const std::string text(1 << 20, 'a');
  EXPECT_LE(matches("(?:a|b)*c|(?:a|b)*", text).size(), 2u);
  EXPECT_EQ(matches("(a+)+b", std::string(60, 'a')).size(), 0u);
}

TEST(SplitRegex, EscapesLiterals) {
  const std::string literal = R"(a.b*[c]\d (x) -#&~/ ^$|?+{1})";
  EXPECT_EQ(matches(escape_pattern(literal), "z" + literal + "z"), Parts{literal});
}

}  // namespace
}  // namespace quire::text
