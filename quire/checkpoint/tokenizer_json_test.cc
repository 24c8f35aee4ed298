#include "quire/checkpoint/tokenizer_json.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "quire/base/error.h"
#include "quire/text/tokenizer.h"

namespace quire::checkpoint {
namespace {

using Ids = std::vector<int32_t>;

/// A whole tokenizer.json; each argument replaces one of its components.
struct Json {
  std::string vocab = R"({"a": 0, "b": 1, "ab": 2, "c": 3, "-": 4})";
  std::string merges = R"(["a b"])";
  std::string options = R"("dropout": null, "unk_token": null, "byte_fallback": false)";
  std::string type = "BPE";
  std::string added = R"([{"id": 5, "content": "<s>", "special": true, "normalized": false}])";
  std::string normalizer = "null";
  std::string pre_tokenizer =
      R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  std::string post_processor = "null";
  std::string decoder = R"({"type": "ByteLevel"})";

  std::string text() const {
    return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": )" + added +
           R"(, "normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer +
           R"(, "post_processor": )" + post_processor + R"(, "decoder": )" + decoder +
           R"(, "model": {"type": ")" + type + R"(", )" + options + R"(, "vocab": )" + vocab +
           R"(, "merges": )" + merges + "}}";
  }
};

Ids encode(const Json& json, std::string_view text) {
  return text::Tokenizer(parse_tokenizer_json(json.text(), "tokenizer.json")).encode(text, true);
}

TEST(TokenizerJson, ReadsMergesInBothForms) {
  Json json;
  EXPECT_EQ(encode(json, "abc<s>ab"), (Ids{2, 3, 5, 2}));
  json.merges = R"([["a", "b"]])";
  EXPECT_EQ(encode(json, "abc<s>ab"), (Ids{2, 3, 5, 2}));
}

TEST(TokenizerJson, ReadsPreTokenizers) {
  Json json;
  json.pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated", "invert": false},
      {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false}]}]})";
  EXPECT_EQ(encode(json, "ab"), (Ids{0, 1}));
  json.pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "b|-"}, "behavior": "Removed", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false}]})";
  EXPECT_EQ(encode(json, "ab-c"), (Ids{0, 3}));
}

TEST(TokenizerJson, ReadsTemplates) {
  Json json;
  json.post_processor = R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
      {"type": "TemplateProcessing", "special_tokens": {"X": {"id": "X", "ids": [5, 4]}},
       "single": [{"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                  {"SpecialToken": {"id": "X", "type_id": 0}}], "pair": []}]})";
  EXPECT_EQ(encode(json, "c"), (Ids{5, 4, 3, 5, 4}));
}

TEST(TokenizerJson, ReadsUnknownAndFlags) {
  Json json;
  json.options = R"("unk_token": "-", "fuse_unk": true, "ignore_merges": true)";
  json.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFC"}]})";
  const text::TokenizerSpec spec = parse_tokenizer_json(json.text(), "");
  EXPECT_EQ(spec.missing_byte_id, 4);
  EXPECT_TRUE(spec.fuse_missing_bytes);
  EXPECT_TRUE(spec.ignore_merges);
  EXPECT_EQ(spec.normalizers, std::vector{text::Normalizer::kNfc});
}

TEST(TokenizerJson, UnsupportedAndMalformedPartsAreNamed) {
  const auto with = [](std::string Json::*part, std::string value) {
    Json json;
    json.*part = std::move(value);
    return json;
  };
  const std::vector<std::pair<std::string, Json>> cases = {
      {"Unigram", with(&Json::type, "Unigram")},
      {"WordPiece", with(&Json::type, "WordPiece")},
      {"byte_fallback", with(&Json::options, R"("byte_fallback": true)")},
      {"end_of_word_suffix", with(&Json::options, R"("end_of_word_suffix": "</w>")")},
      {"Metaspace", with(&Json::pre_tokenizer, R"({"type": "Metaspace"})")},
      {"pre_tokenizer", with(&Json::pre_tokenizer, "null")},
      {"behavior", with(&Json::pre_tokenizer, R"({"type": "Split", "pattern": {"String": "x"}})")},
      {"Lowercase", with(&Json::normalizer, R"({"type": "Lowercase"})")},
      {"normalizers[1]",
       with(&Json::normalizer, R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {}]})")},
      {"BertProcessing", with(&Json::post_processor, R"({"type": "BertProcessing"})")},
      {"single", with(&Json::post_processor, R"({"type": "TemplateProcessing", "single": []})")},
      {"ids[0]", with(&Json::post_processor, R"({"type": "TemplateProcessing",
          "special_tokens": {"X": {"ids": [6]}}, "single": [{"SpecialToken": {"id": "X"}}]})")},
      {"Metaspace", with(&Json::decoder, R"({"type": "Metaspace"})")},
      {"decoder", with(&Json::decoder, "null")},
      {"vocab", with(&Json::vocab, R"({"a": -1})")},
      {"vocab", with(&Json::vocab, R"({"a": 1.5})")},
      {"vocab", with(&Json::vocab, R"({"a": 4000000000})")},
      {"vocab", with(&Json::vocab, R"({"a": 99999999999999999999})")},
      {"vocab", with(&Json::vocab, R"({"a": 0, "b": 0})")},
      {"vocab", with(&Json::vocab, "[]")},
      {"merges[1]", with(&Json::merges, R"(["a b", "ab"])")},
      {"merges[0]", with(&Json::merges, R"([["a"]])")},
      {"merges[0]", with(&Json::merges, R"(["a b c"])")},
      {"merges", with(&Json::merges, "3")},
      {"unk_token", with(&Json::options, R"("unk_token": "zz")")},
      {"added_tokens[0].id", with(&Json::added, R"([{"id": -3, "content": "x"}])")},
      {"added_tokens", with(&Json::added, R"([{"id": 2000000000, "content": "x"}])")},
      {"added_tokens", with(&Json::added, R"([{"id": 0, "content": "x"}])")},
      {"added_tokens[0].content", with(&Json::added, R"([{"id": 5}])")},
      {"added_tokens[0].special",
       with(&Json::added, R"([{"id": 5, "content": "x", "special": 1}])")},
  };
  for (const auto& [name, json] : cases) {
    try {
      parse_tokenizer_json(json.text(), "t.json");
      ADD_FAILURE() << name << " was accepted";
    } catch (const LoadError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find("t.json: "), 0u) << message;
      EXPECT_NE(message.find(name), std::string::npos) << name << " is not in: " << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  }
  for (const char* const text :
       {"", "{", "[]", "null", "{\"model\": 3}", "\xff", "{\"a\": \"\\ud800\"}"}) {
    EXPECT_THROW(parse_tokenizer_json(text, "t.json"), LoadError) << text;
  }
  EXPECT_THROW(parse_tokenizer_json(std::string(100000, '['), "t.json"), LoadError);
}

TEST(TokenizerConfig, GivesTokensTemplatesAndBos) {
  HfTokenizerFiles files;
  files.spec = parse_tokenizer_json(Json().text(), "");
  apply_tokenizer_config(R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "c",
      "unk_token": null, "pad_token": "absent", "add_bos_token": true,
      "chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "D"}]})",
                         "c.json", files);
  EXPECT_EQ(files.spec.bos_token, "<s>");
  EXPECT_EQ(files.spec.bos_id, 5);
  EXPECT_EQ(files.spec.eos_id, 3);
  EXPECT_EQ(files.spec.unk_token, "");
  EXPECT_EQ(files.spec.pad_token, "absent");
  EXPECT_FALSE(files.spec.pad_id.has_value());
  EXPECT_EQ(files.spec.prefix_ids, Ids{5});
  EXPECT_EQ(files.chat_template, "D");
  apply_tokenizer_config(R"({"bos_token": "<s>", "add_bos_token": false, "chat_template": "T"})",
                         "", files);
  EXPECT_EQ(files.spec.prefix_ids, Ids{});
  EXPECT_EQ(files.chat_template, "T");
  EXPECT_THROW(apply_tokenizer_config(R"({"bos_token": 3})", "", files), LoadError);
  EXPECT_THROW(apply_tokenizer_config(R"({"chat_template": [{}]})", "", files), LoadError);
  EXPECT_THROW(apply_tokenizer_config("[]", "", files), LoadError);
}

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() / ("quire_tok_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  void write(const char* name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(HfTokenizer, ReadsAFolder) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_hf_tokenizer(folder.path()), LoadError);
  folder.write("tokenizer.json", Json().text());
  EXPECT_EQ(read_hf_tokenizer(folder.path()).chat_template, "");
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "config"})");
  EXPECT_EQ(read_hf_tokenizer(folder.path()).chat_template, "config");
  folder.write("chat_template.jinja", "file");
  const HfTokenizerFiles files = read_hf_tokenizer(folder.path());
  EXPECT_EQ(files.chat_template, "file");
  EXPECT_EQ(files.spec.bos_id, 5);
}

}  // namespace
}  // namespace quire::checkpoint
