#include "quire/checkpoint/tokenizer_gguf.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "quire/base/error.h"
#include "quire/text/tokenizer.h"
#include "quire/text/tokenizer/byte_alphabet.h"

namespace quire::checkpoint {
namespace {

using Ids = std::vector<int32_t>;

// Ids 0 to 255 are the bytes, 256 "ab", 257 " ab", 258 a control token, 259 a user-defined one.
GgufTokenizerFields small_fields(const std::string& pre) {
  GgufTokenizerFields fields;
  fields.model = "gpt2";
  fields.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    fields.tokens.emplace_back(text::byte_character(static_cast<uint8_t>(byte)));
  }
  fields.merges = {"a b", text::to_byte_characters(" ") + " ab"};
  fields.tokens.insert(fields.tokens.end(),
                       {"ab", text::to_byte_characters(" ab"), "<|end|>", "<tool>"});
  fields.token_types.assign(fields.tokens.size(), 1);
  fields.token_types[258] = 3;
  fields.token_types[259] = 4;
  fields.bos_id = 258;
  fields.eos_id = 258;
  return fields;
}

TEST(TokenizerGguf, ReadsVocabularyMergesAndAddedTokens) {
  const text::Tokenizer tokenizer(tokenizer_spec_from_gguf(small_fields("smollm"), "m.gguf"));
  EXPECT_EQ(tokenizer.encode("ab ab<|end|><tool>12", true), (Ids{256, 257, 258, 259, '1', '2'}));
  EXPECT_TRUE(tokenizer.is_special(258));
  EXPECT_FALSE(tokenizer.is_special(259));
  EXPECT_EQ(tokenizer.spec().bos_id, 258);
  EXPECT_EQ(tokenizer.spec().bos_token, "<|end|>");
  EXPECT_EQ(tokenizer.spec().unk_token, "");
  EXPECT_FALSE(tokenizer.spec().unk_id.has_value());
}

TEST(TokenizerGguf, EachPreTokenizerHasItsRules) {
  const auto spec = [](const char* pre) {
    return tokenizer_spec_from_gguf(small_fields(pre), "m.gguf");
  };
  EXPECT_EQ(spec("gpt-2").pre_tokenizers.size(), 1u);
  EXPECT_EQ(spec("smollm").pre_tokenizers.size(), 2u);
  EXPECT_TRUE(spec("llama-bpe").ignore_merges);
  EXPECT_FALSE(spec("qwen2").ignore_merges);
  EXPECT_EQ(spec("qwen2").normalizers.size(), 1u);
  EXPECT_EQ(spec("deepseek-v3").pre_tokenizers.size(), 4u);
  for (const char* const pre :
       {"gpt-2", "smollm", "llama-bpe", "llama3", "llama-v3", "qwen2", "tekken", "deepseek-v3"}) {
    const text::Tokenizer tokenizer(spec(pre));
    EXPECT_EQ(tokenizer.encode("ab ab", false), (Ids{256, 257})) << pre;
  }
}

TEST(TokenizerGguf, AddsBosWhereTheFileOrTheRulesSaySo) {
  GgufTokenizerFields fields = small_fields("llama-bpe");
  EXPECT_EQ(tokenizer_spec_from_gguf(fields, "").prefix_ids, Ids{258});
  fields.add_bos = false;
  EXPECT_EQ(tokenizer_spec_from_gguf(fields, "").prefix_ids, Ids{});
  fields = small_fields("smollm");
  EXPECT_EQ(tokenizer_spec_from_gguf(fields, "").prefix_ids, Ids{});
  fields.add_bos = true;
  fields.add_eos = true;
  EXPECT_EQ(tokenizer_spec_from_gguf(fields, "").prefix_ids, Ids{258});
  EXPECT_EQ(tokenizer_spec_from_gguf(fields, "").suffix_ids, Ids{258});
}

TEST(TokenizerGguf, BadFieldsAreNamed) {
  using Fields = GgufTokenizerFields;
  const std::vector<std::pair<std::string, std::function<void(Fields&)>>> cases = {
      {"tokenizer.ggml.model", [](Fields& f) { f.model = "llama"; }},
      {"tokenizer.ggml.pre", [](Fields& f) { f.pre = "no-such"; }},
      {"tokenizer.ggml.pre", [](Fields& f) { f.pre.clear(); }},
      {"tokenizer.ggml.tokens", [](Fields& f) { f.tokens.clear(); }},
      {"tokenizer.ggml.token_type", [](Fields& f) { f.token_types.pop_back(); }},
      {"tokenizer.ggml.merges[1]", [](Fields& f) { f.merges[1] = "ab"; }},
      {"tokenizer.ggml.merges[0]", [](Fields& f) { f.merges[0] = ""; }},
      {"tokenizer.ggml.merges[0]", [](Fields& f) { f.merges[0] = "a "; }},
      {"tokenizer.ggml.bos_token_id", [](Fields& f) { f.bos_id = 260; }},
      {"tokenizer.ggml.eos_token_id", [](Fields& f) { f.eos_id = -1; }},
      {"tokenizer.ggml.eot_token_id", [](Fields& f) { f.eot_id = int64_t{1} << 40; }},
  };
  for (const auto& [key, spoil] : cases) {
    GgufTokenizerFields fields = small_fields("smollm");
    spoil(fields);
    try {
      tokenizer_spec_from_gguf(fields, "m.gguf");
      ADD_FAILURE() << key << " was accepted";
    } catch (const LoadError& error) {
      EXPECT_NE(std::string(error.what()).find("m.gguf: " + key), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace quire::checkpoint
