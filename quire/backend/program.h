// Program: what a model does in one step, as a flat list of operations over tensors whose row
// counts are symbols.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quire/backend/packed_weight.h"
#include "quire/tensor/dtype.h"

namespace quire::backend {

/// The symbol a tensor's row count stands for: the step's tokens (T) or the rows that need logits
/// (R).
enum class Rows : uint8_t { kTokens, kLogits };

/// How a tensor's row is held. kPlain: `cols` fp32. Prepared activations (see prepared_row_bytes)
/// feed matmuls.
enum class TensorForm : uint8_t { kPlain, kPreparedBF16, kPreparedI8 };

/// Bytes a row takes, a multiple of 64:
///   kPlain:        cols fp32
///   kPreparedBF16: cols bf16, zero-padded
///   kPreparedI8:   cols int8, then (64-aligned) cols/group fp32 scales, then (64-aligned)
///   cols/group int32 sums of the
///                  group's codes. a = scale * code; codes lie in [-127, 127]; scale = max|a| /
///                  127.
int64_t row_bytes_of(TensorForm form, int64_t cols, int64_t group);
/// Offsets of a kPreparedI8 row's scales and sums.
int64_t prepared_scales_offset(int64_t cols);
int64_t prepared_sums_offset(int64_t cols, int64_t group);

/// One tensor of a program. Storage is a byte range of the arena, valid from first_op to last_op.
struct TensorDecl {
  std::string name;
  Rows rows = Rows::kTokens;
  TensorForm form = TensorForm::kPlain;
  int64_t cols = 0;
  int64_t group = 0;  // kPreparedI8: inputs a scale covers
  int64_t row_bytes = 0;
  int64_t offset = 0;  // in the arena, 64-aligned; rows lie row_bytes apart
  int32_t first_op = -1;
  int32_t last_op = -1;
};

enum class OpKind : uint8_t {
  kEmbed,       // out[T] = row token_ids[t] of weight
  kRmsNorm,     // out = in0 / rms(in0) * vector
  kPrepare,     // out = in0 as kPreparedBF16 or kPreparedI8 (out's form says which)
  kMatmul,      // out = in0 * weight^T (+ vector as bias); in0 plain fp32 or prepared
  kRope,        // in0 rotated in place by the token's position; cols = heads * head_dim
  kStoreKv,     // in0 = k, in1 = v into the KV pages at the token's slot
  kAttention,   // out = attention of in0 = q over the KV pages
  kGatedAct,    // out = silu(in0) * in1
  kAdd,         // out = in0 + in1
  kGatherRows,  // out[R] = row logits_rows[r] of in0
};
inline constexpr int kNumOpKinds = 10;
std::string_view op_kind_name(OpKind kind);

struct AttentionShape {
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  float scale = 0;     // multiplies q.k
  int32_t window = 0;  // 0 = full
  float soft_cap = 0;  // > 0: scores become soft_cap * tanh(score / soft_cap), as in Gemma 2
};

/// One line of a program. Indices are into the Program's tables; -1 = unused.
struct Op {
  OpKind kind = OpKind::kAdd;
  std::array<int32_t, 2> in = {-1, -1};  // tensors
  int32_t out = -1;                      // tensor
  int32_t weight = -1;                   // Program::weights
  int32_t vector = -1;  // Program::vectors: norm weight, bias; for kRope the inverse frequencies
  int32_t layer = -1;   // index within the cache group, for kStoreKv and kAttention
  int32_t cache_group = 0;
  float epsilon = 0;         // kRmsNorm
  AttentionShape attention;  // kRope (heads, head_dim), kStoreKv, kAttention
  std::string name;          // "layers.3.mlp.down_proj"
};

/// Layers that share a paging rule, as the backend sees it.
struct CacheGroupSpec {
  int32_t num_layers = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  DType dtype = DType::kBF16;  // bf16, fp16 or fp32
  int32_t block_tokens = 16;   // a multiple of 16
  int32_t window = 0;          // 0 = full

  /// What a head takes in a page: whole vectors of 16.
  int32_t padded_head_dim() const { return (head_dim + 15) / 16 * 16; }
  /// Bytes of one 16-token page of one kv head: K then V, each 16 * padded_head_dim elements.
  int64_t page_bytes() const {
    return int64_t{2} * 16 * padded_head_dim() * dtype_info(dtype).block_bytes;
  }
  /// Bytes of one block in one layer: [block_tokens/16][kv_head][page].
  int64_t block_layer_bytes() const {
    return int64_t{block_tokens / 16} * num_kv_heads * page_bytes();
  }
  /// Bytes of one block over all layers.
  int64_t block_bytes() const { return num_layers * block_layer_bytes(); }
};

/// The step's program. Built once by ProgramBuilder; moved, not copied, since it owns the packed
/// weights.
struct Program {
  std::vector<TensorDecl> tensors;
  std::vector<Op> ops;
  std::vector<std::shared_ptr<const PackedWeight>>
      weights;  // shared: a tied head uses the embedding's
  std::vector<std::vector<float>> vectors;
  std::vector<CacheGroupSpec> cache_groups;
  int64_t max_tokens = 0;  // T is at most this
  int64_t max_logits = 0;  // R is at most this
  int64_t arena_bytes = 0;
  int32_t logits = -1;  // the tensor that is the program's result, [R, vocab]
  int64_t vocab_size = 0;

  int64_t max_rows(Rows rows) const { return rows == Rows::kTokens ? max_tokens : max_logits; }
  /// Bytes of all weights (each counted once) and vectors.
  int64_t weight_bytes() const;
};

}  // namespace quire::backend
