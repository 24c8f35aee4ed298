#include "quire/checkpoint/hf_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/checkpoint/testing/load_error_of.h"
#include "quire/checkpoint/testing/small_llama.h"

namespace quire::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::load_error_of;

ModelConfig config_of(const std::string& json) {
  return hf_model_config(JsonConfig(json, "config.json"));
}

/// The small Llama's config.json with `extra` put in front ("\"key\": value,"). Where a key comes
/// twice the later one counts, so `extra` adds keys and does not replace any.
std::string with(const std::string& extra) {
  return "{" + extra + testing::small_llama_config_json().substr(1);
}

/// The small Llama's config.json with one text in it replaced.
std::string replaced(const std::string& old_text, const std::string& new_text) {
  std::string json = testing::small_llama_config_json();
  const size_t place = json.find(old_text);
  EXPECT_NE(place, std::string::npos) << old_text;
  return json.replace(place, old_text.size(), new_text);
}

std::string error_of(const std::string& json) {
  return load_error_of([&] { config_of(json); });
}

TEST(HfConfig, ReadsASmallLlama) {
  const ModelConfig config = config_of(testing::small_llama_config_json());
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
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_FALSE(config.mlp_bias);
  EXPECT_EQ(config.dtype, DType::kF32);
  EXPECT_EQ(config.bos_token_id, 0);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(1));
}

TEST(HfConfig, DefaultsAreTheLibrarys) {
  const std::string sizes =
      R"("hidden_size": 64, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 9)";
  const ModelConfig llama =
      config_of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                    "num_attention_heads": 4, )" +
                sizes + "}");
  EXPECT_EQ(llama.num_kv_heads, 4);
  EXPECT_EQ(llama.max_position, 2048);
  EXPECT_EQ(llama.rms_norm_eps, 1e-6);
  EXPECT_EQ(llama.rope_theta, 10000.0);
  EXPECT_FALSE(llama.tie_word_embeddings);
  EXPECT_EQ(llama.dtype, DType::kF32);
  EXPECT_TRUE(llama.eos_token_ids.empty());
  const ModelConfig qwen =
      config_of(R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
                    "num_attention_heads": 32, )" +
                sizes + "}");
  EXPECT_EQ(qwen.num_kv_heads, 32);
  EXPECT_EQ(qwen.max_position, 32768);
  EXPECT_TRUE(qwen.attention_bias);
  EXPECT_FALSE(qwen.attention_output_bias);
}

TEST(HfConfig, BiasesAndHeadDim) {
  const ModelConfig config = config_of(
      with(R"("attention_bias": true, "mlp_bias": true, "head_dim": 16, "dtype": "bfloat16",)"));
  EXPECT_TRUE(config.attention_bias);
  EXPECT_TRUE(config.attention_output_bias);
  EXPECT_TRUE(config.mlp_bias);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_EQ(config_of(with(R"("head_dim": null,)")).head_dim, 8);
  EXPECT_THAT(error_of(with(R"("head_dim": 7,)")), HasSubstr("head_dim: expected an even number"));
  EXPECT_THAT(error_of(with(R"("head_dim": 2048,)")), HasSubstr("head_dim: expected an integer"));
}

TEST(HfConfig, RopeScalingInBothSpellings) {
  const std::string fields = R"("factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 8192)";
  for (const std::string& json :
       {with(R"("rope_scaling": {"rope_type": "llama3", )" + fields + "},"),
        with(R"("rope_scaling": {"type": "llama3", )" + fields + "},"),
        with(R"("rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, )" + fields +
             "},")}) {
    const ModelConfig config = config_of(json);
    EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kLlama3);
    EXPECT_EQ(config.rope_scaling.factor, 32.0);
    EXPECT_EQ(config.rope_scaling.low_freq_factor, 1.0);
    EXPECT_EQ(config.rope_scaling.high_freq_factor, 4.0);
    EXPECT_EQ(config.rope_scaling.original_max_position, 8192);
    const bool newer = json.find("rope_parameters") != std::string::npos;
    EXPECT_EQ(config.rope_theta, newer ? 500000.0 : 10000.0);
  }
  const auto scaling = [](const std::string& object) {
    return with("\"rope_scaling\": " + object + ",");
  };
  EXPECT_EQ(config_of(scaling("null")).rope_scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_EQ(config_of(scaling(R"({"rope_type": "default"})")).rope_scaling.kind,
            RopeScaling::Kind::kNone);
  EXPECT_EQ(config_of(scaling(R"({"type": "linear", "factor": 2})")).rope_scaling.factor, 2.0);
  EXPECT_THAT(error_of(scaling(R"({"rope_type": "yarn", "factor": 4.0})")),
              HasSubstr("rope_scaling.rope_type: expected default, linear or llama3"));
  EXPECT_THAT(error_of(scaling(R"({"rope_type": "llama3", "factor": 4.0})")),
              HasSubstr("rope_scaling.low_freq_factor: expected a number, found no such key"));
  EXPECT_THAT(error_of(scaling(R"({"rope_type": "linear", "factor": 0.5})")),
              HasSubstr("rope_scaling.factor: expected a number from 1"));
}

TEST(HfConfig, WrongValuesNameTheirKey) {
  EXPECT_EQ(error_of(replaced("\"hidden_size\": 32", "\"hidden_size\": \"32\"")),
            "config.json: hidden_size: expected an integer from 1 to 1048576, found \"32\"");
  EXPECT_THAT(error_of(replaced("\"hidden_size\": 32,", "")),
              HasSubstr("hidden_size: expected an integer from 1 to 1048576, found no such key"));
  EXPECT_THAT(error_of(replaced("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 20000")),
              HasSubstr("num_hidden_layers: expected an integer from 1 to 10000, found 20000"));
  EXPECT_THAT(error_of(replaced("\"vocab_size\": 6", "\"vocab_size\": 6.5")),
              HasSubstr("vocab_size: expected an integer"));
  EXPECT_THAT(error_of(replaced("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3")),
              HasSubstr("num_key_value_heads: expected a divisor of num_attention_heads (4)"));
  EXPECT_THAT(error_of(replaced("\"hidden_size\": 32", "\"hidden_size\": 33")),
              HasSubstr("num_attention_heads: expected a divisor of the hidden size 33"));
  EXPECT_THAT(error_of(replaced("1e-05", "-1")), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(error_of(replaced("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1")),
              HasSubstr("tie_word_embeddings: expected true or false, found 1"));
  EXPECT_THAT(error_of(replaced("float32", "float8_e4m3fn")), HasSubstr("torch_dtype: expected"));
  EXPECT_THAT(error_of(replaced("\"eos_token_id\": 1", "\"eos_token_id\": [1, 6]")),
              HasSubstr("eos_token_id: expected an integer from 0 to 5, found 6"));
  EXPECT_THAT(error_of(replaced("[\"LlamaForCausalLM\"]", "[]")), HasSubstr("architectures"));
  EXPECT_THAT(error_of("[]"), HasSubstr("config.json: expected a JSON object, found a list"));
  EXPECT_THAT(error_of("{"), HasSubstr("config.json: expected JSON, found"));
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("config.json: expected JSON"));
}

TEST(HfConfig, WhatIsNotBuiltIsRefused) {
  EXPECT_EQ(error_of(with(R"("quantization_config": {"quant_method": "gptq", "bits": 4},)")),
            "config.json: not supported yet: quantization_config.quant_method gptq");
  EXPECT_THAT(error_of(with(R"("sliding_window": 64,)")),
              HasSubstr("sliding_window: expected none"));
  EXPECT_EQ(error_of(with(R"("sliding_window": null,)")), "no error");
  EXPECT_THAT(error_of(with(R"("partial_rotary_factor": 0.5,)")),
              HasSubstr("partial_rotary_factor: expected 1"));
}

TEST(HfConfig, GenerationDefaults) {
  ModelConfig config = config_of(testing::small_llama_config_json());
  const auto read = [&](const std::string& json) {
    return hf_generation_defaults(JsonConfig(json, "generation_config.json"), config);
  };
  const GenerationDefaults defaults = read(R"({"temperature": 0.6, "top_p": 0.9, "top_k": 20,
      "repetition_penalty": 1.05, "max_new_tokens": 100, "eos_token_id": [3, 4]})");
  EXPECT_EQ(defaults.temperature, 0.6);
  EXPECT_EQ(defaults.top_p, 0.9);
  EXPECT_EQ(defaults.top_k, 20);
  EXPECT_EQ(defaults.min_p, std::nullopt);
  EXPECT_EQ(defaults.repetition_penalty, 1.05);
  EXPECT_EQ(defaults.max_new_tokens, 100);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(3, 4));
  read("{}");
  EXPECT_THAT(config.eos_token_ids, ElementsAre(3, 4));
  EXPECT_THAT(load_error_of([&] { read(R"({"temperature": -1})"); }),
              HasSubstr("generation_config.json: temperature: expected a number from 0"));
  EXPECT_THAT(load_error_of([&] { read(R"({"top_p": "0.9"})"); }), HasSubstr("found \"0.9\""));
}

}  // namespace
}  // namespace quire::checkpoint
