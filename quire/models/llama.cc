#include "quire/models/llama.h"

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::models {
namespace {

using backend::ProgramBuilder;
using backend::Tensor;
using checkpoint::ModelConfig;
using weights::WeightScope;

const ModelConfig& checked(const ModelConfig& config) {
  const auto require = [&](bool holds, std::string_view field, std::string_view expected,
                           const std::string& found) {
    if (!holds) throw LoadError(config.architecture, field, expected, found);
  };
  require(config.hidden_act == "silu", "hidden_act", "silu", config.hidden_act);
  require(config.num_layers > 0, "num_hidden_layers", "at least 1",
          std::to_string(config.num_layers));
  require(config.num_kv_heads > 0 && config.num_heads % config.num_kv_heads == 0,
          "num_attention_heads", fmt::format("a multiple of {} kv heads", config.num_kv_heads),
          std::to_string(config.num_heads));
  require(config.head_dim > 0 && config.head_dim % 2 == 0, "head_dim", "a positive even number",
          std::to_string(config.head_dim));
  return config;
}

nn::Bias bias(bool has) {
  return has ? nn::Bias::kRequired : nn::Bias::kNone;
}

nn::Attention::Options attention_options(const ModelConfig& config, int32_t layer) {
  return {.hidden_size = config.hidden_size,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .qkv_bias = bias(config.attention_bias),
          .output_bias = bias(config.attention_output_bias),
          .cache_group = 0,
          .layer = layer};
}

std::vector<LlamaLayer> load_layers(const WeightScope& scope, const ModelConfig& config) {
  const auto rope =
      std::make_shared<const nn::Rope>(config.head_dim, config.rope_theta, config.rope_scaling);
  std::vector<LlamaLayer> layers;
  layers.reserve(static_cast<size_t>(config.num_layers));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    layers.emplace_back(scope.child(std::to_string(i)), config, rope, static_cast<int32_t>(i));
  }
  return layers;
}

/// A tied head shares the packed embedding; whether it is tied was settled when the checkpoint was
/// opened, so that a stored matrix of a tied head is a copy.
nn::Linear load_head(const WeightScope& root, const ModelConfig& config,
                     const nn::Embedding& embedding) {
  const WeightScope scope = root.child("lm_head");
  if (!config.tie_word_embeddings) {
    return {scope, config.vocab_size, config.hidden_size, nn::Split::kColumns, nn::Bias::kNone};
  }
  if (scope.has("weight")) scope.skip("weight");
  return {scope, embedding.table(), nn::Split::kColumns};
}

}  // namespace

LlamaLayer::LlamaLayer(const WeightScope& scope, const ModelConfig& config,
                       std::shared_ptr<const nn::Rope> rope, int32_t index)
    : name_(fmt::format("layers.{}", index)),
      input_norm_(scope.child("input_layernorm"), config.hidden_size, config.rms_norm_eps),
      attention_(scope.child("self_attn"), attention_options(config, index), std::move(rope)),
      post_attention_norm_(scope.child("post_attention_layernorm"), config.hidden_size,
                           config.rms_norm_eps),
      mlp_(scope.child("mlp"), config.hidden_size, config.intermediate_size,
           bias(config.mlp_bias)) {}

Tensor LlamaLayer::record(ProgramBuilder& p, Tensor x) const {
  const ProgramBuilder::Scope scope(p, name_);
  x = p.add(x, attention_.record(p, input_norm_.record(p, x)));
  return p.add(x, mlp_.record(p, post_attention_norm_.record(p, x)));
}

LlamaModel::LlamaModel(const WeightScope& root, const ModelConfig& config)
    : config_(checked(config)),
      embedding_(root.child("model.embed_tokens"), config.vocab_size, config.hidden_size),
      layers_(load_layers(root.child("model.layers"), config)),
      norm_(root.child("model.norm"), config.hidden_size, config.rms_norm_eps),
      lm_head_(load_head(root, config, embedding_)) {}

Tensor LlamaModel::embed(ProgramBuilder& p) const {
  return embedding_.record(p);
}

Tensor LlamaModel::head(ProgramBuilder& p, Tensor x) const {
  return lm_head_.record(p, norm_.record(p, p.gather_logits_rows(x)));
}

std::vector<backend::CacheGroupSpec> LlamaModel::cache_groups(DType dtype,
                                                              int32_t block_tokens) const {
  return {{.num_layers = static_cast<int32_t>(config_.num_layers),
           .num_kv_heads = static_cast<int32_t>(config_.num_kv_heads),
           .head_dim = static_cast<int32_t>(config_.head_dim),
           .dtype = dtype,
           .block_tokens = block_tokens}};
}

}  // namespace quire::models
