#include "quire/text/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <string>

#include "quire/text/tokenizer/byte_alphabet.h"

namespace quire::text {
namespace {

TEST(CodePoints, ForwardsAndBackwards) {
  const std::string text = "a\u00e9\u65e5\U0001F600";
  size_t at = 0;
  for (const char32_t expected : {U'a', U'\u00e9', U'\u65e5', U'\U0001F600'}) {
    const CodePoint point = code_point_at(text, at);
    EXPECT_EQ(point.value, expected);
    at += point.length;
    const CodePoint before = code_point_before(text, at);
    EXPECT_EQ(before.value, expected);
    EXPECT_EQ(before.length, point.length);
  }
}

TEST(CodePoints, BytesThatAreNoText) {
  for (const char* const bytes :
       {"\x80", "\xc1\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f"}) {
    EXPECT_EQ(code_point_at(bytes, 0).value, kInvalidByte);
    EXPECT_EQ(code_point_at(bytes, 0).length, 1u);
    EXPECT_EQ(code_point_before(bytes, std::string_view(bytes).size()).value, kInvalidByte);
  }
  EXPECT_EQ(code_point_before("\u00e9\x80", 3).value, kInvalidByte);
}

TEST(UnicodeClasses, KnowEachClass) {
  using C = UnicodeClasses;
  const UnicodeClasses& classes = UnicodeClasses::get();
  EXPECT_EQ(classes.flags('a'), C::kLetter | C::kWord);
  EXPECT_EQ(classes.flags('7'), C::kNumber | C::kNumeric | C::kWord);
  EXPECT_EQ(classes.flags(0xBD), C::kNumber | C::kNumeric);  // one half
  EXPECT_EQ(classes.flags(0x3000), C::kSpace);
  EXPECT_EQ(classes.flags(0x180E), 0);
  EXPECT_EQ(classes.flags(0x301), C::kWord);
  EXPECT_EQ(classes.flags('_'), C::kWord);
  EXPECT_EQ(classes.flags('.'), 0);
  EXPECT_EQ(classes.flags(0x1C89), C::kLetter | C::kWord);  // Unicode 16
  EXPECT_EQ(classes.flags(0x11DE0), C::kNumeric);           // Unicode 17
  EXPECT_EQ(classes.flags(kInvalidByte), 0);
}

TEST(ByteAlphabet, NamesEachByteOnce) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::string back;
  EXPECT_TRUE(append_bytes_of(to_byte_characters(all), back));
  EXPECT_EQ(back, all);
  EXPECT_EQ(byte_character(' '), "\u0120");
  EXPECT_EQ(byte_character('\n'), "\u010a");
  EXPECT_EQ(byte_character(0xAD), "\u0143");
  EXPECT_FALSE(append_bytes_of("a\u65e5", back));
  EXPECT_FALSE(append_bytes_of(" ", back));
  EXPECT_EQ(back, all);
}

}  // namespace
}  // namespace quire::text
