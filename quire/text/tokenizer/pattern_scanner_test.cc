#include "quire/text/tokenizer/pattern_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "quire/text/tokenizer/split_regex.h"
#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

std::vector<std::string> scan(std::string_view pattern, std::string_view text) {
  const MatchEnd scanner = find_scanner(pattern);
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t end = scanner(text, at);
    pieces.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

std::vector<std::string> match(std::string_view pattern, std::string_view text) {
  const SplitRegex regex{std::string(pattern)};
  std::vector<Piece> found;
  SplitRegex::Matcher(regex).find_all(text, 0, found);
  std::vector<std::string> pieces;
  for (const Piece& piece : found)
    pieces.emplace_back(text.substr(piece.begin, piece.end - piece.begin));
  return pieces;
}

TEST(PatternScanner, KnowsOnlyItsPatterns) {
  EXPECT_NE(find_scanner(kGpt2Pattern), nullptr);
  EXPECT_EQ(find_scanner(R"(\s+)"), nullptr);
}

TEST(PatternScanner, CutsAsThePatternsSay) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(scan(kGpt2Pattern, "I'll go  12345 times!\n\n x"),
            (Pieces{"I", "'ll", " go", " ", " 12345", " times", "!", "\n\n", " x"}));
  EXPECT_EQ(scan(kLlama3Pattern, "I'LL go  12345 times!\n\n x"),
            (Pieces{"I", "'LL", " go", " ", " ", "123", "45", " times", "!\n\n", " x"}));
  EXPECT_EQ(scan(kQwen2Pattern, "12 \n  a\tb"), (Pieces{"1", "2", " \n", " ", " a", "\tb"}));
  EXPECT_EQ(scan(kLlama3Pattern, "'\u017f"), (Pieces{"'\u017f"}));
  EXPECT_EQ(scan(kGpt2Pattern, "a   "), (Pieces{"a", "   "}));
}

class ScannerAgainstRegex : public testing::TestWithParam<std::string_view> {};

TEST_P(ScannerAgainstRegex, AgreeOnRandomTexts) {
  // By kind: letters, digits, spaces, newlines, marks, signs, contractions, bytes that are no
  // UTF-8.
  const std::vector<std::string> parts = {
      "a",      "Z",          "\u00e9",  "\u65e5",     "\u1c89", "1",        "\u0967",
      "\u00bd", "\U00010d40", " ",       "  ",         "\t",     "\n",       "\r",
      "\r\n",   "\u00a0",     "\u3000",  "\u0085",     "\u180e", "\u200b",   "\u0301",
      ".",      "!",          "'",       "\U0001F600", "'s",     "'T",       "'re",
      "'VE",    "'lL",        "'\u017f", "'d",         "\xff",   "\xe6\x97", "_"};
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += parts[random() % parts.size()];
    ASSERT_EQ(scan(GetParam(), text), match(GetParam(), text)) << testing::PrintToString(text);
  }
}

TEST_P(ScannerAgainstRegex, AgreeOnEveryCodePoint) {
  const SplitRegex regex{std::string(GetParam())};
  SplitRegex::Matcher matcher(regex);
  const MatchEnd scanner = find_scanner(GetParam());
  std::vector<Piece> found;
  for (char32_t point = 0x80; point < 0x33000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    std::string encoded;
    if (point < 0x800) {
      encoded = {static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 63))};
    } else {
      if (point > 0xFFFF) encoded += static_cast<char>(0xF0 | (point >> 18));
      encoded +=
          static_cast<char>(point > 0xFFFF ? 0x80 | ((point >> 12) & 63) : 0xE0 | (point >> 12));
      encoded += static_cast<char>(0x80 | ((point >> 6) & 63));
      encoded += static_cast<char>(0x80 | (point & 63));
    }
    const std::string text = "a" + encoded + "1" + encoded + "." + encoded + " " + encoded;
    found.clear();
    matcher.find_all(text, 0, found);
    size_t at = 0;
    for (const Piece& piece : found) {
      ASSERT_EQ(piece.begin, at);
      at = scanner(text, at);
      ASSERT_EQ(piece.end, at) << "U+" << std::hex << static_cast<uint32_t>(point);
    }
    ASSERT_EQ(at, text.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, ScannerAgainstRegex,
                         testing::Values(kGpt2Pattern, kLlama3Pattern, kQwen2Pattern));

}  // namespace
}  // namespace quire::text
