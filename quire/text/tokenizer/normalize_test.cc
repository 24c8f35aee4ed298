#include "quire/text/tokenizer/normalize.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace quire::text {
namespace {

TEST(NormalizeNfc, ComposesAndOrders) {
  EXPECT_EQ(normalize_nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(normalize_nfc("a\u0323\u0302"), "\u1ead");
  EXPECT_EQ(normalize_nfc("a\u0302\u0323"), "\u1ead");
  EXPECT_EQ(normalize_nfc("\u212b\u2126"), "\u00c5\u03a9");  // singletons
  EXPECT_EQ(normalize_nfc("\u0958"), "\u0915\u093c");        // excluded from composition
  EXPECT_EQ(normalize_nfc("\u1112\u1161\u11ab"), "\ud55c");  // Hangul
  EXPECT_EQ(normalize_nfc("\U0001D15E"), "\U0001D157\U0001D165");
  EXPECT_EQ(normalize_nfc("plain"), "plain");
}

TEST(NormalizeNfc, MarksOfNewerUnicodeStayInPlace) {
  EXPECT_EQ(normalize_nfc("a\u0345\u1df9"), "a\u0345\u1df9");
  EXPECT_EQ(normalize_nfc("\U00011935\U00011930"), "\U00011935\U00011930");
}

TEST(NormalizeNfc, KeepsBytesThatAreNoText) {
  EXPECT_EQ(normalize_nfc("e\xff\u0301\xe6\x97"), "e\xff\u0301\xe6\x97");
  EXPECT_EQ(normalize_nfc("\xff"
                          "e\u0301"),
            "\xff\u00e9");
}

TEST(NormalizeNfc, SurelyNfcMeansUnchanged) {
  EXPECT_TRUE(is_surely_nfc("plain \u00e9 \u65e5\u672c \ud55c \U0001F600 \xff"));
  EXPECT_FALSE(is_surely_nfc("e\u0301"));
  EXPECT_FALSE(is_surely_nfc("\u212b"));
  EXPECT_FALSE(is_surely_nfc("\u1100\u1161"));
  EXPECT_FALSE(is_surely_nfc("\uac00\u11a8"));
  EXPECT_FALSE(is_surely_nfc("\u09c7\u09be"));
}

TEST(NormalizeNfc, LongRunsOfMarksAreFast) {
  std::string text = "a";
  while (text.size() < 1 << 20) text += "\u0345\u0301\u0323";  // in the worst order
  const std::clock_t begin = std::clock();
  const std::string normalized = normalize_nfc(text);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 5.0);                    // ~0.1 s in release
  EXPECT_EQ(normalized.size(), text.size());  // a and the first dot below became one of 3 bytes
  EXPECT_EQ(normalized.substr(0, 5), "\u1ea1\u0323");
}

}  // namespace
}  // namespace quire::text
