#include "quire/bench/lengths.h"

#include <gtest/gtest.h>

#include "quire/base/error.h"

namespace quire::bench {
namespace {

TEST(Lengths, ReadsLinesAndSkipsEmptyOnes) {
  const auto pairs = parse_lengths(
      "{\"input_len\": 3, \"output_len\": 5, \"note\": \"x\"}\n\n  "
      "\r\n{\"output_len\":1,\"input_len\":2}",
      "f");
  EXPECT_EQ(pairs, (std::vector<LengthPair>{{3, 5}, {2, 1}}));
}

std::string error_of(std::string_view text) {
  try {
    parse_lengths(text, "f");
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(Lengths, NamesTheLineAtFault) {
  const std::string good = "{\"input_len\": 3, \"output_len\": 5}\n";
  EXPECT_NE(error_of(good + "3 5\n").find("f:2"), std::string::npos);
  EXPECT_NE(error_of(good + "{\"input_len\": 0, \"output_len\": 5}").find("input_len"),
            std::string::npos);
  EXPECT_NE(error_of("{\"input_len\": 3}").find("output_len"), std::string::npos);
  EXPECT_NE(error_of("{\"input_len\": 3.5, \"output_len\": 5}").find("3.5"), std::string::npos);
  EXPECT_NE(error_of("{\"input_len\": 1e99, \"output_len\": 5}"), "");
  EXPECT_NE(error_of("\n"), "");
}

// What the file says of itself: the means that the PagedAttention paper gives for ShareGPT.
TEST(Lengths, CommittedFileHasThePublishedMeans) {
  const auto pairs = parse_lengths(sharegpt_like_lengths(), "committed");
  ASSERT_EQ(pairs.size(), 2000u);
  double input = 0;
  double output = 0;
  for (const LengthPair& pair : pairs) {
    EXPECT_LE(pair.input_len + pair.output_len, 2048);
    input += pair.input_len;
    output += pair.output_len;
  }
  EXPECT_NEAR(input / 2000, 161.31, 0.02);
  EXPECT_NEAR(output / 2000, 337.99, 0.02);
}

}  // namespace
}  // namespace quire::bench
