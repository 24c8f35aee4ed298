#include "quire/engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace quire::engine {
namespace {

/// Feeds `text` in pieces of `size` bytes; what was shown, and the stop found.
std::pair<std::string, std::string> run(const std::vector<std::string>& stops,
                                        const std::string& text, size_t size,
                                        bool include_stop = false) {
  StopMatcher matcher(stops, include_stop);
  std::string shown;
  for (size_t at = 0; at < text.size(); at += size) {
    StopMatcher::Found found = matcher.push(text.substr(at, size));
    shown += found.text;
    if (found.stop) return {shown, matcher.stop(*found.stop)};
  }
  return {shown + matcher.flush(), ""};
}

// Field report 2: "ABC", then part of a stop string: nothing of it may be shown.
TEST(StopMatcher, HoldsBackWhatMayBeginAStop) {
  StopMatcher matcher({"DEFGHIJ"}, false);
  EXPECT_EQ(matcher.push("ABC").text, "ABC");
  EXPECT_EQ(matcher.push("DEF").text, "");
  EXPECT_EQ(matcher.push("GHI").text, "");
  const StopMatcher::Found found = matcher.push("JKL");
  EXPECT_EQ(found.text, "");
  ASSERT_TRUE(found.stop.has_value());
}

TEST(StopMatcher, ShowsWhatWasHeldWhenTheMatchFails) {
  StopMatcher matcher({"DEFGHIJ"}, false);
  EXPECT_EQ(matcher.push("ABCDEF").text, "ABC");
  EXPECT_EQ(matcher.push("X").text, "DEFX");
  EXPECT_EQ(matcher.push("DE").text, "");
  EXPECT_EQ(matcher.push("DEF").text, "DE");
  EXPECT_EQ(matcher.flush(), "DEF");
}

TEST(StopMatcher, FirstToEndWinsThenTheLongest) {
  EXPECT_EQ(run({"abc", "b"}, "xabcy", 100), (std::pair<std::string, std::string>{"xa", "b"}));
  EXPECT_EQ(run({"c", "bc"}, "xabcy", 100), (std::pair<std::string, std::string>{"xa", "bc"}));
  EXPECT_EQ(run({"ab", "abc"}, "xabcy", 100), (std::pair<std::string, std::string>{"x", "ab"}));
}

TEST(StopMatcher, CanIncludeTheStop) {
  EXPECT_EQ(run({"END"}, "go END now", 3, true).first, "go END");
}

TEST(StopMatcher, OverlappingStarts) {
  EXPECT_EQ(run({"aab"}, "aaaab", 1), (std::pair<std::string, std::string>{"aa", "aab"}));
  EXPECT_EQ(run({"abab!"}, "ababab!", 2), (std::pair<std::string, std::string>{"ab", "abab!"}));
}

TEST(StopMatcher, StopsThatMayNotStopYetPassAsText) {
  StopMatcher matcher({"\n\n"}, false);
  StopMatcher::Found found = matcher.push("a\n\n", false);
  EXPECT_FALSE(found.stop.has_value());
  EXPECT_EQ(found.text, "a\n");
  found = matcher.push("\n", true);
  EXPECT_TRUE(found.stop.has_value());
}

TEST(StopMatcher, PiecesDoNotMatter) {
  std::mt19937 generator(5);
  for (int round = 0; round < 3000; ++round) {
    const auto word = [&](size_t longest) {
      std::string made;
      const size_t length = 1 + generator() % longest;
      for (size_t i = 0; i < length; ++i) made += static_cast<char>('a' + generator() % 2);
      return made;
    };
    const std::vector<std::string> stops = {word(6), word(6), word(9)};
    const std::string text = word(40);
    const auto whole = run(stops, text, text.size());
    for (const size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{7}}) {
      ASSERT_EQ(run(stops, text, size), whole) << text << " cut by " << size;
    }
    // Against plain search: the earliest end of any stop.
    size_t end = std::string::npos;
    for (const std::string& stop : stops) {
      const size_t at = text.find(stop);
      if (at != std::string::npos) end = std::min(end, at + stop.size());
    }
    ASSERT_EQ(whole.second.empty(), end == std::string::npos);
    if (end != std::string::npos) {
      ASSERT_EQ(whole.first.size() + whole.second.size(), end);
    } else {
      ASSERT_EQ(whole.first, text);
    }
  }
}

}  // namespace
}  // namespace quire::engine
