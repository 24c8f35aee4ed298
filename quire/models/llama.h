// LlamaModel: the Llama architecture (RMSNorm, rotary GQA, SwiGLU), and others that differ from it
// only in which biases their config asks for.
#pragma once

#include <memory>
#include <vector>

#include "quire/checkpoint/model_config.h"
#include "quire/models/model.h"
#include "quire/nn/attention.h"
#include "quire/nn/embedding.h"
#include "quire/nn/gated_mlp.h"
#include "quire/nn/rms_norm.h"

namespace quire::models {

class LlamaLayer final : public Layer {
 public:
  /// Takes "<scope>.{input_layernorm,self_attn,post_attention_layernorm,mlp}".
  LlamaLayer(const weights::WeightScope& scope, const checkpoint::ModelConfig& config,
             std::shared_ptr<const nn::Rope> rope, int32_t index);
  backend::Tensor record(backend::ProgramBuilder& p, backend::Tensor x) const override;

 private:
  std::string name_;
  nn::RmsNorm input_norm_;
  nn::Attention attention_;
  nn::RmsNorm post_attention_norm_;
  nn::GatedMlp mlp_;
};

class LlamaModel final : public Model {
 public:
  /// Loads from the root scope. Throws LoadError for settings the architecture does not have.
  LlamaModel(const weights::WeightScope& root, const checkpoint::ModelConfig& config);

  backend::Tensor embed(backend::ProgramBuilder& p) const override;
  int64_t num_layers() const override { return static_cast<int64_t>(layers_.size()); }
  const Layer& layer(int64_t index) const override { return layers_[static_cast<size_t>(index)]; }
  backend::Tensor head(backend::ProgramBuilder& p, backend::Tensor x) const override;
  std::vector<backend::CacheGroupSpec> cache_groups(DType dtype,
                                                    int32_t block_tokens) const override;

 private:
  checkpoint::ModelConfig config_;
  nn::Embedding embedding_;
  std::vector<LlamaLayer> layers_;
  nn::RmsNorm norm_;
  nn::Linear lm_head_;
};

}  // namespace quire::models
