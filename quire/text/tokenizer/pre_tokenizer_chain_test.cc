#include "quire/text/tokenizer/pre_tokenizer_chain.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire::text {
namespace {

using Behavior = PreTokenizer::Behavior;
using Parts = std::vector<std::string>;

Parts cut_dashes(std::string_view text, Behavior behavior, bool invert = false) {
  PreTokenizer split;
  split.kind = PreTokenizer::Kind::kSplitRegex;
  split.pattern = "-";
  split.behavior = behavior;
  split.invert = invert;
  PreTokenizer last;
  last.use_regex = false;
  const PreTokenizerChain chain(std::vector<PreTokenizer>{split, last});
  Pieces result;
  chain.run(text, result);
  Parts parts;
  for (const Piece& piece : result.pieces) {
    parts.emplace_back(result.text.substr(piece.begin, piece.end - piece.begin));
  }
  return parts;
}

// The table of HF's documentation for Split.
TEST(PreTokenizerChain, SplitsByEveryBehavior) {
  const std::string_view text = "the-final--countdown";
  EXPECT_EQ(cut_dashes(text, Behavior::kRemoved), (Parts{"the", "final", "countdown"}));
  EXPECT_EQ(cut_dashes(text, Behavior::kIsolated),
            (Parts{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(cut_dashes(text, Behavior::kMergedWithPrevious),
            (Parts{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(cut_dashes(text, Behavior::kMergedWithNext),
            (Parts{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(cut_dashes(text, Behavior::kContiguous),
            (Parts{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(cut_dashes(text, Behavior::kRemoved, true), (Parts{"-", "-", "-"}));
  EXPECT_EQ(cut_dashes("--", Behavior::kMergedWithNext), (Parts{"-", "-"}));
  EXPECT_EQ(cut_dashes("", Behavior::kIsolated), Parts{});
}

TEST(PreTokenizerChain, DigitsAloneOrTogether) {
  for (const bool individual : {false, true}) {
    PreTokenizer digits;
    digits.kind = PreTokenizer::Kind::kDigits;
    digits.individual_digits = individual;
    PreTokenizer last;
    last.use_regex = false;
    const PreTokenizerChain chain(std::vector<PreTokenizer>{digits, last});
    Pieces result;
    chain.run("a1\u0967 \u00bd", result);
    EXPECT_EQ(result.pieces.size(), individual ? 5u : 4u);
  }
}

}  // namespace
}  // namespace quire::text
