#include "quire/models/llama.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/base/error.h"
#include "quire/models/program_recorder.h"
#include "quire/models/registry.h"
#include "quire/weights/testing/memory_source.h"
#include "quire/weights/testing/reading_backend.h"

namespace quire::models {
namespace {

using backend::OpKind;
using backend::Program;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weights::WeightScope;

checkpoint::ModelConfig small_config() {
  checkpoint::ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 6;
  config.vocab_size = 10;
  config.tie_word_embeddings = true;
  return config;
}

struct LlamaTest : ::testing::Test {
  LlamaTest() {
    add("model.embed_tokens.weight", {10, 8});
    add("model.norm.weight", {8});
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      add(layer + "input_layernorm.weight", {8});
      add(layer + "post_attention_layernorm.weight", {8});
      add(layer + "self_attn.q_proj.weight", {24, 8});
      add(layer + "self_attn.k_proj.weight", {12, 8});
      add(layer + "self_attn.v_proj.weight", {12, 8});
      add(layer + "self_attn.o_proj.weight", {8, 24});
      add(layer + "mlp.gate_proj.weight", {12, 8});
      add(layer + "mlp.up_proj.weight", {12, 8});
      add(layer + "mlp.down_proj.weight", {8, 12});
    }
  }
  /// Values that differ from tensor to tensor, so that none is taken for another.
  void add(const std::string& name, std::vector<int64_t> shape) {
    int64_t size = 1;
    for (const int64_t dim : shape) size *= dim;
    std::vector<float> values(static_cast<size_t>(size), static_cast<float>(++made_));
    source.add(name, std::move(shape), values);
  }
  void add_biases() {
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      add(layer + "self_attn.q_proj.bias", {24});
      add(layer + "self_attn.k_proj.bias", {12});
      add(layer + "self_attn.v_proj.bias", {12});
      add(layer + "self_attn.o_proj.bias", {8});
      add(layer + "mlp.gate_proj.bias", {12});
      add(layer + "mlp.up_proj.bias", {12});
      add(layer + "mlp.down_proj.bias", {8});
    }
  }
  std::unique_ptr<Model> load() {
    return load_model(config, WeightScope(source, backend, {.activation = activation}));
  }
  Program record() {
    const auto model = load();
    return record_program(
        *model,
        {.max_tokens = 32, .max_logits = 4, .cache_groups = model->cache_groups(DType::kF32, 16)});
  }
  std::string error() {
    try {
      load();
    } catch (const LoadError& caught) {
      return caught.what();
    }
    return "no error";
  }
  static const backend::Op& op_named(const Program& program, std::string_view name) {
    const auto found = std::find_if(program.ops.begin(), program.ops.end(),
                                    [&](const backend::Op& op) { return op.name == name; });
    EXPECT_NE(found, program.ops.end()) << name;
    return *found;
  }

  weights::testing::MemorySource source;
  weights::testing::ReadingBackend backend;
  checkpoint::ModelConfig config = small_config();
  weights::ActivationDType activation = weights::ActivationDType::kF32;

 private:
  int made_ = 0;
};

TEST_F(LlamaTest, RecordsTheLayerAsTheArchitectureHasIt) {
  const Program program = record();
  std::vector<std::string> names;
  names.reserve(program.ops.size());
  for (const backend::Op& op : program.ops) names.push_back(op.name);
  const std::vector<std::string> layer = {"input_layernorm.norm",
                                          "self_attn.q_proj",
                                          "self_attn.k_proj",
                                          "self_attn.v_proj",
                                          "self_attn.rope",
                                          "self_attn.rope",
                                          "self_attn.store_kv",
                                          "self_attn.attention",
                                          "self_attn.o_proj",
                                          "add",
                                          "post_attention_layernorm.norm",
                                          "mlp.gate_proj",
                                          "mlp.up_proj",
                                          "mlp.gated_act",
                                          "mlp.down_proj",
                                          "add"};
  std::vector<std::string> expected = {"embed"};
  for (const std::string prefix : {"layers.0.", "layers.1."}) {
    for (const std::string& op : layer) expected.push_back(prefix + op);
  }
  for (const char* op : {"gather_rows", "norm.norm", "lm_head"}) expected.emplace_back(op);
  EXPECT_EQ(names, expected);

  EXPECT_EQ(program.vocab_size, 10);
  EXPECT_EQ(op_named(program, "layers.1.self_attn.store_kv").layer, 1);
  const auto& shape = op_named(program, "layers.0.self_attn.attention").attention;
  EXPECT_EQ(shape.num_heads, 4);
  EXPECT_EQ(shape.num_kv_heads, 2);
  EXPECT_FLOAT_EQ(shape.scale, 1.0f / std::sqrt(6.0f));
  EXPECT_EQ(program.cache_groups[0].num_layers, 2);
}

TEST_F(LlamaTest, ATiedHeadSharesThePackedEmbedding) {
  EXPECT_EQ(record().weights.size(), 15u);
  const auto& tensor = *source.find("model.embed_tokens.weight");
  source.add("lm_head.weight", DType::kF32, {10, 8}, {tensor.bytes.begin(), tensor.bytes.end()});
  EXPECT_EQ(record().weights.size(), 15u) << "a stored copy is not packed again";
}

TEST_F(LlamaTest, AnUntiedHeadMustBeThere) {
  config.tie_word_embeddings = false;
  EXPECT_THAT(error(), HasSubstr("lm_head.weight"));
  add("lm_head.weight", {10, 8});
  EXPECT_EQ(record().weights.size(), 16u);
}

TEST_F(LlamaTest, TakesBiasesWhereTheConfigHasThem) {
  EXPECT_EQ(op_named(record(), "layers.0.self_attn.q_proj").vector, -1);
  config.attention_bias = true;
  config.attention_output_bias = true;
  config.mlp_bias = true;
  EXPECT_THAT(error(), HasSubstr("q_proj.bias"));
  add_biases();
  const Program program = record();
  std::vector<float> firsts;
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                           "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    const backend::Op& op = op_named(program, std::string("layers.0.") + name);
    ASSERT_GE(op.vector, 0) << name;
    firsts.push_back(program.vectors[static_cast<size_t>(op.vector)][0]);
  }
  EXPECT_THAT(firsts, ElementsAre(21, 22, 23, 24, 25, 26, 27));
}

TEST_F(LlamaTest, ActivationOptionDecidesWhatIsPrepared) {
  const auto count_prepares = [](const Program& program) {
    return std::count_if(program.ops.begin(), program.ops.end(),
                         [](const backend::Op& op) { return op.kind == OpKind::kPrepare; });
  };
  EXPECT_EQ(count_prepares(record()), 0);
  for (const std::string& name : source.names()) {
    const auto& tensor = *source.find(name);
    if (tensor.shape.size() != 2) continue;
    source.add(name, DType::kBF16, tensor.shape,
               std::vector<std::byte>(tensor.bytes.size() / 2, std::byte{0x3c}));
  }
  activation = weights::ActivationDType::kBF16;
  // Per layer: one for q, k and v, one for o, one for gate and up, one for down; and one for the
  // head.
  EXPECT_EQ(count_prepares(record()), 2 * 4 + 1);
}

TEST_F(LlamaTest, RefusesWhatItIsNot) {
  config.hidden_act = "gelu";
  EXPECT_THAT(error(), HasSubstr("hidden_act"));
  config = small_config();
  config.num_kv_heads = 3;
  EXPECT_THAT(error(), HasSubstr("num_attention_heads"));
  config = small_config();
  config.architecture = "UnheardOfForCausalLM";
  EXPECT_THAT(error(), HasSubstr("LlamaForCausalLM"));
  EXPECT_THAT(error(), HasSubstr("UnheardOfForCausalLM"));
  config = small_config();
  config.num_layers = 3;
  EXPECT_THAT(error(), HasSubstr("model.layers.2.input_layernorm.weight"));
  config = small_config();
  config.hidden_size = 16;
  EXPECT_THAT(error(), HasSubstr("[10, 16]"));
}

}  // namespace
}  // namespace quire::models
