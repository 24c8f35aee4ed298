#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/testing/little_endian.h"
#include "quire/checkpoint/testing/load_error_of.h"
#include "quire/checkpoint/testing/small_llama.h"
#include "quire/checkpoint/testing/temp_folder.h"

namespace quire::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::load_error_of;
using testing::SafetensorsWriter;
using testing::TempFolder;

std::string error_of(const std::string& path) {
  return load_error_of([&] { open_checkpoint(path); });
}

void write_text(const std::string& path, const std::string& text) {
  testing::write_file(path, testing::to_bytes(text));
}

SafetensorsWriter tensors_with_head(float first) {
  SafetensorsWriter writer = testing::small_llama_safetensors();
  std::vector<float> head(size_t{6} * 32);
  head[0] = first;
  return writer.add_f32("lm_head.weight", {6, 32}, head);
}

TEST(OpenCheckpoint, AGgufFileAndAFolderThatHoldsOne) {
  const TempFolder folder;
  testing::small_llama_gguf().write(folder.file("m.gguf"));
  for (const std::string& path : {folder.file("m.gguf"), folder.path()}) {
    const Checkpoint checkpoint = open_checkpoint(path);
    EXPECT_EQ(checkpoint.config.hidden_size, 32);
    EXPECT_EQ(checkpoint.source_path, folder.file("m.gguf"));
    EXPECT_TRUE(checkpoint.tensors->rope_rows_interleaved());
    EXPECT_EQ(checkpoint.chat_template, "{{ messages[0]['content'] }}");
    EXPECT_EQ(checkpoint.tokenizer.vocab.size(), 6u);
    EXPECT_EQ(checkpoint.tokenizer.eos_id, 1);
    const StoredTensor* norm = checkpoint.tensors->find("model.norm.weight");
    ASSERT_NE(norm, nullptr);
    EXPECT_EQ(*reinterpret_cast<const float*>(norm->bytes.data()), 1.0f);
    checkpoint.tensors->release(*norm);
  }
}

TEST(OpenCheckpoint, AnHfFolder) {
  const TempFolder folder;
  testing::write_small_llama(folder.path());
  write_text(folder.file("generation_config.json"), R"({"eos_token_id": [2], "top_k": 7})");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  EXPECT_EQ(checkpoint.config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(checkpoint.config.eos_token_ids, std::vector<int32_t>{2});
  EXPECT_EQ(checkpoint.generation.top_k, 7);
  EXPECT_FALSE(checkpoint.tensors->rope_rows_interleaved());
  EXPECT_EQ(checkpoint.tensors->names().size(), 11u);
  EXPECT_TRUE(checkpoint.tokenizer.vocab.empty());
  EXPECT_TRUE(checkpoint.config.tie_word_embeddings);
}

TEST(OpenCheckpoint, ShardsAreJoinedByTheirIndex) {
  const TempFolder folder;
  write_text(folder.file("config.json"), testing::small_llama_config_json());
  SafetensorsWriter rest;
  rest.add_f32("extra", {2}, {3.0f, 4.0f});
  testing::write_shards(folder.path(),
                        {{"model-00001-of-00002.safetensors", testing::small_llama_safetensors()},
                         {"model-00002-of-00002.safetensors", rest}});
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  const StoredTensor* extra = checkpoint.tensors->find("extra");
  ASSERT_NE(extra, nullptr);
  EXPECT_EQ(extra->file, folder.file("model-00002-of-00002.safetensors"));
  EXPECT_EQ(reinterpret_cast<const float*>(extra->bytes.data())[1], 4.0f);
  EXPECT_EQ(checkpoint.tensors->names().size(), 12u);

  fs::remove(folder.file("model-00002-of-00002.safetensors"));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("model-00002-of-00002.safetensors: No such file"));
  SafetensorsWriter()
      .add_f32("other", {1}, {1})
      .write(folder.file("model-00002-of-00002.safetensors"));
  EXPECT_THAT(error_of(folder.path()),
              HasSubstr("model-00002-of-00002.safetensors: extra: expected a tensor, as "
                        "model.safetensors.index.json says"));
}

TEST(OpenCheckpoint, AnIndexStaysInItsFolder) {
  const TempFolder folder;
  write_text(folder.file("config.json"), testing::small_llama_config_json());
  for (const char* name : {"../a.safetensors", "/etc/a.safetensors", "sub/a.safetensors", "", "..",
                           ".safetensors", "a.bin", "a\\u0000.safetensors"}) {
    write_text(folder.file("model.safetensors.index.json"),
               std::string(R"({"weight_map": {"w": ")") + name + "\"}}");
    EXPECT_THAT(error_of(folder.path()), HasSubstr("weight_map: w: expected the name of a"))
        << name;
  }
  write_text(folder.file("model.safetensors.index.json"), R"({"weight_map": {"w": 1}})");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("weight_map: expected strings, found 1"));
  write_text(folder.file("model.safetensors.index.json"), R"({"weight_map": {}})");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("weight_map: expected tensors, found none"));
}

TEST(OpenCheckpoint, AHeadThatDiffersIsNotTied) {
  const TempFolder folder;
  testing::write_small_llama(folder.path());
  tensors_with_head(0.0f).write(folder.file("model.safetensors"));
  EXPECT_TRUE(open_checkpoint(folder.path()).config.tie_word_embeddings);
  tensors_with_head(0.5f).write(folder.file("model.safetensors"));
  EXPECT_FALSE(open_checkpoint(folder.path()).config.tie_word_embeddings);
}

TEST(OpenCheckpoint, AMissingHeadOrEmbeddingIsNamed) {
  const TempFolder folder;
  std::string config = testing::small_llama_config_json();
  config.replace(config.find("\"tie_word_embeddings\": true"), 27,
                 "\"tie_word_embeddings\": false");
  testing::write_small_llama(folder.path());
  write_text(folder.file("config.json"), config);
  EXPECT_EQ(error_of(folder.path()),
            folder.path() +
                ": lm_head.weight: expected a tensor, since tie_word_embeddings is "
                "false, found none");
  SafetensorsWriter().add_f32("x", {1}, {1}).write(folder.file("model.safetensors"));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("model.embed_tokens.weight: expected a tensor"));
}

TEST(OpenCheckpoint, SaysWhatItLookedFor) {
  const TempFolder folder;
  EXPECT_THAT(error_of(folder.file("absent")),
              HasSubstr("absent: expected a GGUF file or an HF folder, found nothing"));
  EXPECT_THAT(error_of(folder.path()),
              HasSubstr("expected a config.json with safetensors beside it, or exactly one .gguf "
                        "file, found neither"));
  testing::small_llama_gguf().write(folder.file("a.gguf"));
  testing::small_llama_gguf().write(folder.file("b.gguf"));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("found 2 .gguf files"));
  write_text(folder.file("config.json"), testing::small_llama_config_json());
  EXPECT_THAT(error_of(folder.path()), HasSubstr("weights: expected model.safetensors or "));
  write_text(folder.file("pytorch_model.bin"), "x");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("pickled weights only, which are never loaded"));
  write_text(folder.file("empty.gguf"), "");
  EXPECT_THAT(error_of(folder.file("empty.gguf")),
              HasSubstr("empty.gguf: magic: expected 4 bytes"));
}

/// The default model, where this machine has it: QUIRE_TEST_MODEL names the file.
TEST(OpenCheckpoint, TheDefaultModel) {
  const char* path = std::getenv("QUIRE_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "QUIRE_TEST_MODEL is not set";
  const Checkpoint checkpoint = open_checkpoint(path);
  EXPECT_EQ(checkpoint.config.num_layers, 30);
  EXPECT_EQ(checkpoint.config.hidden_size, 576);
  EXPECT_EQ(checkpoint.config.head_dim, 64);
  EXPECT_EQ(checkpoint.config.vocab_size, 49152);
  EXPECT_TRUE(checkpoint.config.tie_word_embeddings);
  EXPECT_EQ(checkpoint.config.eos_token_ids, std::vector<int32_t>{2});
  EXPECT_EQ(checkpoint.tokenizer.vocab.size(), 49152u);
  EXPECT_EQ(checkpoint.tensors->names().size(), 272u);
  EXPECT_EQ(checkpoint.tensors->find("model.embed_tokens.weight")->dtype, DType::kQ8_0);
}

}  // namespace
}  // namespace quire::checkpoint
