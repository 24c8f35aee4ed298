#include "quire/checkpoint/gguf_config.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/checkpoint/testing/gguf_writer.h"
#include "quire/checkpoint/testing/load_error_of.h"
#include "quire/checkpoint/testing/small_llama.h"

namespace quire::checkpoint {
namespace {

using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::load_error_of;

ModelConfig config_of(const GgufWriter& writer) {
  const auto bytes = writer.bytes();
  return gguf_model_config(GgufFile(bytes, "m.gguf"));
}

/// The metadata of a small Llama, but for one integer key.
GgufWriter with(const std::string& key, uint32_t value) {
  const std::vector<std::pair<std::string, uint32_t>> sizes = {
      {"block_count", 1},          {"context_length", 128},     {"embedding_length", 32},
      {"feed_forward_length", 64}, {"attention.head_count", 4}, {"attention.head_count_kv", 2},
      {"vocab_size", 6},           {"attention.key_length", 8}};
  GgufWriter writer;
  writer.set_string("general.architecture", "llama")
      .set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  for (const auto& [name, usual] : sizes)
    writer.set_u32("llama." + name, name == key ? value : usual);
  return writer;
}

TEST(GgufConfig, ReadsASmallLlama) {
  const ModelConfig config = config_of(testing::small_llama_gguf());
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.hidden_size, 32);
  EXPECT_EQ(config.intermediate_size, 64);
  EXPECT_EQ(config.num_layers, 1);
  EXPECT_EQ(config.num_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 6);
  EXPECT_EQ(config.max_position, 128);
  EXPECT_FLOAT_EQ(static_cast<float>(config.rms_norm_eps), 1e-5f);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(1));
  EXPECT_EQ(config.bos_token_id, 0);
}

TEST(GgufConfig, SizesOutOfRangeNameTheirKey) {
  EXPECT_EQ(load_error_of([] { config_of(with("", 0)); }), "no error");
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.head_count_kv", "vocab_size", "attention.key_length"}) {
    for (const uint32_t wrong : {0u, ~0u}) {
      EXPECT_THAT(load_error_of([&] { config_of(with(key, wrong)); }),
                  HasSubstr("m.gguf: llama." + std::string(key) + ": expected an integer from"));
    }
  }
  EXPECT_THAT(load_error_of([] { config_of(with("block_count", 10001)); }), HasSubstr("10000"));
  EXPECT_THAT(load_error_of([] { config_of(with("attention.head_count_kv", 3)); }),
              HasSubstr("llama.attention.head_count_kv: expected a divisor of"));
  EXPECT_THAT(load_error_of([] { config_of(with("attention.key_length", 9)); }),
              HasSubstr("llama.attention.key_length: expected an even number"));
}

TEST(GgufConfig, MissingKeysAreNamed) {
  EXPECT_EQ(load_error_of([] { config_of(GgufWriter()); }),
            "m.gguf: general.architecture: expected a string, found no such key");
  GgufWriter bare;
  bare.set_string("general.architecture", "llama");
  EXPECT_THAT(load_error_of([&] { config_of(bare); }),
              HasSubstr("llama.embedding_length: expected an integer from 1"));
  EXPECT_THAT(load_error_of([] { config_of(testing::small_llama_gguf_config()); }),
              HasSubstr("tokenizer.ggml.tokens: expected a vocabulary, found none"));
}

TEST(GgufConfig, ArchitecturesGetTheirHfNames) {
  const auto named = [](const std::string& arch) {
    GgufWriter writer;
    writer.set_string("general.architecture", arch);
    for (const char* key : {"block_count", "context_length", "embedding_length",
                            "feed_forward_length", "attention.head_count", "vocab_size"}) {
      writer.set_u32(arch + "." + key, std::string(key) == "embedding_length" ? 8 : 1);
    }
    writer.set_f32(arch + ".attention.layer_norm_rms_epsilon", 1e-6f);
    return writer;
  };
  EXPECT_EQ(config_of(named("qwen2")).architecture, "Qwen2ForCausalLM");
  EXPECT_EQ(config_of(named("gemma3")).architecture, "gemma3");
  GgufWriter experts = named("llama");
  experts.set_u32("llama.expert_count", 8);
  EXPECT_EQ(config_of(experts).architecture, "MixtralForCausalLM");
}

TEST(GgufConfig, EndTokensAreTheUnion) {
  GgufWriter writer = with("", 0);
  writer.set_u32("tokenizer.ggml.eos_token_id", 2).set_u32("tokenizer.ggml.eot_token_id", 5);
  EXPECT_THAT(config_of(writer).eos_token_ids, ElementsAre(2, 5));
  GgufWriter outside = with("", 0);
  outside.set_u32("tokenizer.ggml.eos_token_id", 6);
  EXPECT_THAT(load_error_of([&] { config_of(outside); }),
              HasSubstr("tokenizer.ggml.eos_token_id: expected an integer from 0 to 5, found 6"));
}

TEST(GgufConfig, TensorsDecideHeadAndBiases) {
  GgufWriter writer = with("", 0);
  const std::vector<float> values(32 * 6);
  writer.add_f32("output.weight", {6, 32}, values)
      .add_f32("blk.0.attn_q.bias", {32}, std::vector<float>(32))
      .add_f32("blk.0.attn_q.weight", {1, 32}, std::vector<float>(32));
  const ModelConfig config = config_of(writer);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_TRUE(config.attention_bias);
  EXPECT_FALSE(config.attention_output_bias);
  EXPECT_EQ(config.dtype, DType::kF32);
}

TEST(GgufConfig, AVocabularyLargerThanTheEmbeddingIsRefused) {
  GgufWriter writer = testing::small_llama_gguf_config();
  writer.set_strings("tokenizer.ggml.tokens", {"a", "b", "c"})
      .add_f32("token_embd.weight", {2, 32}, std::vector<float>(64));
  EXPECT_THAT(load_error_of([&] { config_of(writer); }),
              HasSubstr("tokenizer.ggml.tokens: expected at most 2 tokens, found 3"));
}

TEST(GgufConfig, RopeDivisorsComeFromTheirTensor) {
  GgufWriter writer = with("", 0);
  writer.add_f32("rope_freqs.weight", {4}, {1, 1, 4, 8});
  const RopeScaling scaling = config_of(writer).rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::kDivisors);
  EXPECT_THAT(scaling.divisors, ElementsAre(1, 1, 4, 8));

  GgufWriter short_one = with("", 0);
  short_one.add_f32("rope_freqs.weight", {3}, {1, 1, 4});
  EXPECT_THAT(load_error_of([&] { config_of(short_one); }), HasSubstr("expected F32 [4]"));
  GgufWriter zero = with("", 0);
  zero.add_f32("rope_freqs.weight", {4}, {1, 1, 0, 8});
  EXPECT_THAT(load_error_of([&] { config_of(zero); }), HasSubstr("divisors above 0"));
}

TEST(GgufConfig, RopeScalingKinds) {
  GgufWriter linear = with("", 0);
  linear.set_string("llama.rope.scaling.type", "linear").set_f32("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(config_of(linear).rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(config_of(linear).rope_scaling.factor, 4.0);
  GgufWriter yarn = with("", 0);
  yarn.set_string("llama.rope.scaling.type", "yarn");
  EXPECT_THAT(load_error_of([&] { config_of(yarn); }), HasSubstr("not supported yet), found yarn"));
  GgufWriter partial = with("", 0);
  partial.set_u32("llama.rope.dimension_count", 4);
  EXPECT_THAT(load_error_of([&] { config_of(partial); }),
              HasSubstr("llama.rope.dimension_count: expected 8, the head dimension, found 4"));
}

TEST(GgufConfig, TokenizerFieldsAreTakenAsTheyAre) {
  const auto bytes = testing::small_llama_gguf().bytes();
  const GgufFile file(bytes, "m.gguf");
  ASSERT_TRUE(has_gguf_tokenizer(file.metadata()));
  const GgufTokenizerFields fields = gguf_tokenizer_fields(file.metadata());
  EXPECT_EQ(fields.model, "gpt2");
  EXPECT_EQ(fields.pre, "smollm");
  EXPECT_THAT(fields.tokens, ElementsAre("<s>", "</s>", "a", "b", "ab", "c"));
  EXPECT_THAT(fields.token_types, ElementsAre(3, 3, 1, 1, 1, 1));
  EXPECT_THAT(fields.merges, ElementsAre("a b"));
  EXPECT_EQ(fields.bos_id, 0);
  EXPECT_EQ(fields.eos_id, 1);
  EXPECT_EQ(fields.eot_id, std::nullopt);
  EXPECT_EQ(fields.add_bos, false);
  EXPECT_EQ(fields.add_eos, std::nullopt);
}

}  // namespace
}  // namespace quire::checkpoint
