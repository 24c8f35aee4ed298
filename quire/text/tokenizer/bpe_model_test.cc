#include "quire/text/tokenizer/bpe_model.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "quire/text/tokenizer/tiny_spec.h"

namespace quire::text {
namespace {

using Ids = std::vector<int32_t>;

/// The definition: merge the pair of lowest rank, leftmost first, until none is left.
Ids merge_by_definition(const TokenizerSpec& spec, std::string_view piece) {
  std::vector<std::string> parts;
  for (const char byte : piece) parts.push_back(to_byte_characters({&byte, 1}));
  for (bool merged = true; merged;) {
    merged = false;
    for (const auto& [left, right] : spec.merges) {
      for (size_t i = 0; i + 1 < parts.size() && !merged; ++i) {
        if (parts[i] != left || parts[i + 1] != right) continue;
        parts[i] += parts[i + 1];
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(i) + 1);
        merged = true;
      }
      if (merged) break;
    }
  }
  const Vocabulary vocabulary(spec);
  Ids ids;
  for (const std::string& part : parts) ids.push_back(vocabulary.find_content(part));
  return ids;
}

TEST(BpeModel, ShortAndLongPiecesFollowTheDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> merges;
    while (merges.size() < 30) {
      const auto pair =
          std::pair(tokens[random() % tokens.size()], tokens[random() % tokens.size()]);
      if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
      merges.push_back(pair);
      tokens.push_back(pair.first + pair.second);
    }
    const TokenizerSpec spec = tiny_spec(merges);
    const Vocabulary vocabulary(spec);
    const BpeModel model(spec, vocabulary);
    BpeModel::Workspace workspace;
    for (const size_t length : {0u, 1u, 2u, 5u, 20u, 47u, 48u, 49u, 100u, 200u}) {
      std::string piece;
      while (piece.size() < length) piece += "abc"[random() % 3];
      const Ids expected = merge_by_definition(spec, piece);
      for (int again = 0; again < 2; ++again) {  // the second time what was learnt is used
        Ids ids;
        model.encode(piece, workspace, ids);
        ASSERT_EQ(ids, expected) << piece;
      }
    }
  }
}

TEST(BpeModel, ATokenThatItsMergesDoNotMakeIsNotTaken) {
  // "abc" is a token, but a-b merges first and ab-c never does.
  TokenizerSpec spec = tiny_spec({{"a", "b"}, {"b", "c"}, {"a", "bc"}});
  const Vocabulary vocabulary(spec);
  const BpeModel model(spec, vocabulary);
  BpeModel::Workspace workspace;
  for (int again = 0; again < 2; ++again) {
    Ids ids;
    model.encode("abc", workspace, ids);
    EXPECT_EQ(ids, (Ids{256, 'c'}));
  }
}

}  // namespace
}  // namespace quire::text
