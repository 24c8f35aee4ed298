#include "quire/text/tokenizer.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "quire/base/error.h"
#include "quire/text/tokenizer/tiny_spec.h"

namespace quire::text {
namespace {

using Ids = std::vector<int32_t>;

Ids bytes_of(std::string_view text) {
  Ids ids;
  for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

// Merges: 256 "lo", 257 "low", 258 " low", 259 "er".
TokenizerSpec low_spec() {
  return tiny_spec({{"l", "o"}, {"lo", "w"}, {" ", "low"}, {"e", "r"}});
}

TEST(Tokenizer, MergesByRankInsidePieces) {
  const Tokenizer tokenizer(low_spec());
  EXPECT_EQ(tokenizer.encode("low lower", false), (Ids{257, 258, 259}));
  EXPECT_EQ(tokenizer.encode("l ow", false), (Ids{'l', ' ', 'o', 'w'}));
  EXPECT_EQ(tokenizer.encode("", false), Ids{});
}

TEST(Tokenizer, AddsPrefixAndSuffixOnlyWhenAsked) {
  TokenizerSpec spec = low_spec();
  const int32_t bos = add_token(spec, "<s>", true).id;
  const int32_t eos = add_token(spec, "</s>", true).id;
  spec.prefix_ids = {bos};
  spec.suffix_ids = {eos};
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("low", true), (Ids{bos, 257, eos}));
  EXPECT_EQ(tokenizer.encode("", true), (Ids{bos, eos}));
  EXPECT_EQ(tokenizer.encode("low", false), (Ids{257}));
}

TEST(Tokenizer, SpecialTokensStayTextForUsers) {
  TokenizerSpec spec = low_spec();
  const int32_t special = add_token(spec, "<|im_start|>", true).id;
  const int32_t plain = add_token(spec, "<tool>", false).id;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("<|im_start|>low<tool>", false), (Ids{special, 257, plain}));
  Ids expected = bytes_of("<|im_start|>");
  expected.insert(expected.end(), {257, plain});
  EXPECT_EQ(tokenizer.encode("<|im_start|>low<tool>", false, false), expected);
}

TEST(Tokenizer, PlainRangesKeepSpecialTokensTextAndNothingElseApart) {
  TokenizerSpec spec = low_spec();
  const int32_t special = add_token(spec, "<|end|>", true).id;
  const Tokenizer tokenizer(spec);
  const std::string text = "lo<|end|>w<|end|>";
  EXPECT_EQ(tokenizer.encode(text, false, std::vector<ByteRange>{}), tokenizer.encode(text, false));
  const Ids ids = tokenizer.encode(text, false, std::vector<ByteRange>{{2, 9}});
  EXPECT_EQ(ids.back(), special);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), special), 1);
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  // A range cuts nothing: merges go across its edges as if it were not there.
  EXPECT_EQ(tokenizer.encode("low", false, std::vector<ByteRange>{{1, 2}}), (Ids{257}));
  ASSERT_EQ(tokenizer.special_spellings(text).size(), 2U);
  EXPECT_EQ(tokenizer.special_spellings(text)[1].begin, 10U);
}

TEST(Tokenizer, PlainRangesHoldForTokensMatchedAfterNormalization) {
  TokenizerSpec spec = tiny_spec();
  spec.normalizers = {Normalizer::kNfc};
  AddedToken& token = add_token(spec, "<|end|>", true);
  token.normalized = true;
  const int32_t special = token.id;
  const Tokenizer tokenizer(spec);
  const std::string user = "e\u0301<|end|>e\u0301";  // shorter once composed
  const std::string text = "e\u0301<|end|>" + user + "<|end|>";
  const size_t at = text.rfind(user) + 3;
  const Ids ids = tokenizer.encode(text, false, std::vector<ByteRange>{{at, at + 7}});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), special), 2);
  EXPECT_EQ(ids.back(), special);
  EXPECT_EQ(ids[2], special);  // after the two bytes of the composed letter
  EXPECT_EQ(tokenizer.decode(ids, false), "\u00e9<|end|>\u00e9<|end|>\u00e9<|end|>");
}

TEST(Tokenizer, WholePiecesNeverBecomeAddedTokens) {
  TokenizerSpec spec = low_spec();
  spec.ignore_merges = true;
  add_token(spec, "special", true);
  add_token(spec, "word", false).single_word = true;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("special", false, false), bytes_of("special"));
  EXPECT_EQ(tokenizer.encode("word1", false), bytes_of("word1"));
}

TEST(Tokenizer, IgnoreMergesTakesWholePieces) {
  TokenizerSpec spec = low_spec();
  spec.vocab.push_back(to_byte_characters(" whole"));
  const auto whole = static_cast<int32_t>(spec.vocab.size()) - 1;
  EXPECT_EQ(Tokenizer(spec).encode(" whole", false), bytes_of(" whole"));
  spec.ignore_merges = true;
  EXPECT_EQ(Tokenizer(spec).encode(" whole whole!", false), (Ids{whole, whole, '!'}));
}

TEST(Tokenizer, TextAfterASpecialTokenIsCutByItself) {
  TokenizerSpec spec = low_spec();
  const int32_t start = add_token(spec, "<|im_start|>", true).id;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("<|im_start|> low\nlow", false), (Ids{start, 258, '\n', 257}));
}

TEST(Tokenizer, NormalizesTextButNotRawTokens) {
  TokenizerSpec spec = tiny_spec({{"\xC3", "\xA9"}});  // 256: é composed
  spec.normalizers = {Normalizer::kNfc};
  const int32_t raw = add_token(spec, "<e\u0301>", false).id;
  AddedToken& normalized = add_token(spec, "[e\u0301]", false);
  normalized.normalized = true;
  const int32_t normalized_id = normalized.id;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("e\u0301\u00e9", false), (Ids{256, 256}));
  EXPECT_EQ(tokenizer.encode("<e\u0301><\u00e9>", false), (Ids{raw, '<', 256, '>'}));
  EXPECT_EQ(tokenizer.encode("[e\u0301][\u00e9]", false), (Ids{normalized_id, normalized_id}));
}

TEST(Tokenizer, PrefixSpaceGoesBeforeEachStretchOfText) {
  TokenizerSpec spec = low_spec();
  spec.pre_tokenizers[0].add_prefix_space = true;
  const int32_t mark = add_token(spec, "<x>", true).id;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("low<x>low<x> low", false), (Ids{258, mark, 258, mark, 258}));
}

TEST(Tokenizer, BytesWithoutATokenAreDroppedOrUnknown) {
  TokenizerSpec spec;
  spec.vocab = {"a", "?"};
  spec.pre_tokenizers.emplace_back();
  EXPECT_EQ(Tokenizer(spec).encode("abba", false), (Ids{0, 0}));
  spec.missing_byte_id = 1;
  EXPECT_EQ(Tokenizer(spec).encode("abba", false), (Ids{0, 1, 1, 0}));
  spec.fuse_missing_bytes = true;
  EXPECT_EQ(Tokenizer(spec).encode("abba", false), (Ids{0, 1, 0}));
}

TEST(Tokenizer, DecodesBytesAddedTokensAndUnknownIds) {
  TokenizerSpec spec = low_spec();
  const int32_t special = add_token(spec, "<\u4e2d>", true).id;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.decode(Ids{258, special, 0xFF, -1, 1 << 30}, false), " low<\u4e2d>\xFF");
  EXPECT_EQ(tokenizer.decode(Ids{258, special, 'x'}, true), " lowx");
  EXPECT_EQ(tokenizer.token_bytes(258), " low");
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_TRUE(tokenizer.is_special(special));
  EXPECT_FALSE(tokenizer.is_special(1 << 30));
  EXPECT_EQ(tokenizer.token_id("<\u4e2d>"), special);
  EXPECT_EQ(tokenizer.token_id("no such"), -1);
  EXPECT_EQ(tokenizer.token_id(""), -1);
  EXPECT_EQ(tokenizer.vocab_size(), special + 1);
}

TEST(Tokenizer, AnyBytesRoundTrip) {
  const Tokenizer tokenizer(low_spec());
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 64, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false), false), text);
  }
}

TEST(Tokenizer, NaturalTextRoundTrips) {
  std::ifstream file(QUIRE_SOURCE_DIR "/../shared/data/wikitext2-valid.txt");
  if (!file) GTEST_SKIP() << "needs wikitext2-valid.txt";
  const Tokenizer tokenizer(low_spec());
  for (std::string line; std::getline(file, line);) {
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(line, false), false), line);
  }
}

TEST(Tokenizer, LongUnbrokenRunsAreLinear) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const char* const run : {"a", " ", "\n", ".", "1"}) {
    for (std::string half = run; half.size() <= 64; half += half) merges.emplace_back(half, half);
  }
  const std::vector<std::string> patterns = {
      "",  // ByteLevel's own
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+|\p{N}|\s*[\r\n]+|\s+(?!\S)|\s+|.)"};
  for (const std::string& pattern : patterns) {
    TokenizerSpec spec = tiny_spec(merges);
    if (!pattern.empty()) {
      spec.pre_tokenizers[0].use_regex = false;
      PreTokenizer& split = *spec.pre_tokenizers.emplace(spec.pre_tokenizers.begin());
      split.kind = PreTokenizer::Kind::kSplitRegex;
      split.pattern = pattern;
    }
    const Tokenizer tokenizer(spec);
    for (const char* const run : {"a", "A", " ", "1", ".", " \n", "\xff"}) {
      std::string text;
      while (text.size() < 1 << 20) text += run;
      text += "x";
      const std::clock_t begin = std::clock();
      const Ids ids = tokenizer.encode(text, false);
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      EXPECT_LT(seconds, 5.0) << pattern << " on a run of " << run;  // ~0.1 s in release
      EXPECT_EQ(tokenizer.decode(ids, false), text);
    }
  }
}

TEST(Tokenizer, ThreadsShareOne) {
  const Tokenizer tokenizer(low_spec());
  const Ids expected = tokenizer.encode("low lower lowest", false);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (tokenizer.encode("low lower lowest", false) != expected) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Tokenizer, RefusesSpecificationsThatContradictThemselves) {
  TokenizerSpec unknown_merge = low_spec();
  unknown_merge.merges.emplace_back("q", "zz");
  EXPECT_THROW(Tokenizer{unknown_merge}, LoadError);
  TokenizerSpec unknown_result = low_spec();
  unknown_result.merges.emplace_back("q", "z");
  EXPECT_THROW(Tokenizer{unknown_result}, LoadError);
  TokenizerSpec bad_pattern = low_spec();
  bad_pattern.pre_tokenizers.emplace(bad_pattern.pre_tokenizers.begin())->kind =
      PreTokenizer::Kind::kSplitRegex;
  bad_pattern.pre_tokenizers[0].pattern = "(";
  EXPECT_THROW(Tokenizer{bad_pattern}, LoadError);
  TokenizerSpec no_byte_level = low_spec();
  no_byte_level.pre_tokenizers.clear();
  EXPECT_THROW(Tokenizer{no_byte_level}, LoadError);
  TokenizerSpec wrong_token = low_spec();
  add_token(wrong_token, "<x>", true).id = 3;
  EXPECT_THROW(Tokenizer{wrong_token}, LoadError);
  TokenizerSpec outside = low_spec();
  add_token(outside, "<x>", true).id = -5;
  EXPECT_THROW(Tokenizer{outside}, LoadError);
}

TEST(Tokenizer, KnowsWhatItTakes) {
  // Enough tokens and merges that rounding does not count: "aa" to "zz", then "aaa" to "zzz".
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<std::string> pairs;
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) {
      merges.emplace_back(std::string(1, a), std::string(1, b));
      pairs.push_back({a, b});
    }
  }
  for (const std::string& pair : pairs) {
    for (char c = 'a'; c <= 'z'; ++c) merges.emplace_back(pair, std::string(1, c));
  }
  const auto before = static_cast<int64_t>(mallinfo2().uordblks + mallinfo2().hblkhd);
  const Tokenizer tokenizer(tiny_spec(merges));
  const auto after = static_cast<int64_t>(mallinfo2().uordblks + mallinfo2().hblkhd);
  if (after == before) GTEST_SKIP() << "another allocator";
  EXPECT_GT(tokenizer.heap_size(), 1 << 20);
  EXPECT_NEAR(static_cast<double>(tokenizer.heap_size()), static_cast<double>(after - before),
              0.05 * static_cast<double>(after - before));
}

}  // namespace
}  // namespace quire::text
