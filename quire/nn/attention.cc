#include "quire/nn/attention.h"

#include <cmath>

namespace quire::nn {
namespace {

backend::AttentionShape shape_of(const Attention::Options& options) {
  return {.num_heads = static_cast<int32_t>(options.num_heads),
          .num_kv_heads = static_cast<int32_t>(options.num_kv_heads),
          .head_dim = static_cast<int32_t>(options.head_dim),
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(options.head_dim)))};
}

}  // namespace

Attention::Attention(const weights::WeightScope& scope, const Options& options,
                     std::shared_ptr<const Rope> rope)
    : name_(scope.name()),
      options_(options),
      shape_(shape_of(options)),
      q_proj_(scope.child("q_proj"), options.num_heads * options.head_dim, options.hidden_size,
              Split::kColumns, options.qkv_bias, scope.rope_rows(options.head_dim)),
      k_proj_(scope.child("k_proj"), options.num_kv_heads * options.head_dim, options.hidden_size,
              Split::kColumns, options.qkv_bias, scope.rope_rows(options.head_dim)),
      v_proj_(scope.child("v_proj"), options.num_kv_heads * options.head_dim, options.hidden_size,
              Split::kColumns, options.qkv_bias),
      o_proj_(scope.child("o_proj"), options.hidden_size, options.num_heads * options.head_dim,
              Split::kRows, options.output_bias),
      rope_(std::move(rope)) {}

backend::Tensor Attention::record(backend::ProgramBuilder& p, backend::Tensor x) const {
  const backend::ProgramBuilder::Scope scope(p, name_);
  // In this order the three matmuls are one list of work to a backend, and so are the row
  // operations after them.
  const backend::Tensor projected_q = q_proj_.record(p, x);
  const backend::Tensor projected_k = k_proj_.record(p, x);
  const backend::Tensor v = v_proj_.record(p, x);
  const backend::Tensor q = rope_->record(p, projected_q, options_.num_heads);
  const backend::Tensor k = rope_->record(p, projected_k, options_.num_kv_heads);
  p.store_kv(k, v, shape_, options_.cache_group, options_.layer);
  return o_proj_.record(p, p.attention(q, shape_, options_.cache_group, options_.layer));
}

}  // namespace quire::nn
