// Attention: grouped-query attention with rotary positions over the paged KV cache.
#pragma once

#include <memory>
#include <string>

#include "quire/nn/linear.h"
#include "quire/nn/rope.h"

namespace quire::nn {

class Attention {
 public:
  struct Options {
    int64_t hidden_size = 0;
    int64_t num_heads = 0;
    int64_t num_kv_heads = 0;
    int64_t head_dim = 0;
    Bias qkv_bias = Bias::kNone;
    Bias output_bias = Bias::kNone;
    int32_t cache_group = 0;
    int32_t layer = 0;  // index within the cache group
  };

  /// Takes "<scope>.{q,k,v,o}_proj". `rope` is shared by the layers.
  Attention(const weights::WeightScope& scope, const Options& options,
            std::shared_ptr<const Rope> rope);

  /// x: [T, hidden_size] -> [T, hidden_size]; each token sees its own row's context.
  backend::Tensor record(backend::ProgramBuilder& p, backend::Tensor x) const;

 private:
  std::string name_;
  Options options_;
  backend::AttentionShape shape_;
  Linear q_proj_;
  Linear k_proj_;
  Linear v_proj_;
  Linear o_proj_;
  std::shared_ptr<const Rope> rope_;
};

}  // namespace quire::nn
