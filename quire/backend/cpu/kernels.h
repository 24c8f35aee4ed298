// KernelTable: the CPU kernels of the chosen instruction set, one function pointer each. Levels
// refine it weakest first.
#pragma once

// Files compiled for an instruction set include this header: keep it to plain structs and
// <cstdint>.
#include <cstdint>

namespace quire::backend::cpu {

/// A packed weight as kernels see it: see PackedWeight for the layouts.
struct WeightArgs {
  const void* data;  // panels
  int64_t in;
  int64_t out;
  int64_t group;  // 0 for dense
  int64_t panel_bytes;
  int64_t slice_bytes;       // of a panel
  int64_t block_groups;      // groups whose scales lie together before their codes
  int64_t block_bytes;       // of those scales
  int64_t super_bytes;       // of the scales before a super-group's first block
  int32_t zero;              // Offset::kConstant: subtracted from codes (int8 codes: 128)
  bool has_min;              // Offset::kMin: each entry's 16 scales are followed by 16 mins
  bool has_zeros;            // Offset::kZeros: they are followed by 16 zeros
  int64_t groups_per_super;  // 0: scales of one level
  int64_t num_slices;        // K slices of the row-split tree
};

/// One matmul call: rows of activations against panels [panel_begin, panel_end). Writes
///   out[r][o] = tree(slices of sum_k a[r][k] * w[o][k]) + bias[o]
/// where each slice is summed in K order and slices are added as a binary tree (8 slices:
/// ((0+1)+(2+3))+((4+5)+(6+7))). The same bits for any number of rows, panels and workers. With
/// slice_begin/end set to a subtree (1, 2, 4 aligned slices), only those are summed: what one rank
/// of a row-split Linear computes; bias is then the caller's affair (null).
struct MatmulArgs {
  WeightArgs w;
  const void* a;     // first activation row: plain fp32, or prepared (program.h) bf16 / int8
  int64_t a_stride;  // bytes between rows
  int64_t a_scales;  // kPreparedI8: byte offsets of scales and sums inside a row
  int64_t a_sums;
  int64_t rows;
  float* out;
  int64_t out_stride;  // floats between rows
  const float* bias;   // [out] or null
  int64_t panel_begin;
  int64_t panel_end;
  int64_t slice_begin;
  int64_t slice_end;
  /// Not 0: calls of one thread, one after the other, with the same key and `a` have the same
  /// activations there, so that they need not be packed again.
  uint64_t activations_key = 0;
};
using MatmulFn = void (*)(const MatmulArgs&);

/// Preparing rows for matmuls: fp32 rows -> bf16 (round to nearest even, zero-padded) or int8 by
/// group.
struct PrepareArgs {
  const float* in;
  int64_t in_stride;  // floats
  void* out;
  int64_t out_stride;  // bytes
  int64_t cols;
  int64_t group;   // int8 only
  int64_t scales;  // byte offsets inside an output row, int8 only
  int64_t sums;
  int64_t rows;
};
using PrepareFn = void (*)(const PrepareArgs&);

/// Elementwise and row operations over rows [0, rows); pointers are to the first row, strides in
/// floats.
struct RowArgs {
  const float* a;
  const float* b;  // second input, or null
  float* out;
  int64_t a_stride;
  int64_t b_stride;
  int64_t out_stride;
  int64_t cols;
  int64_t rows;
  const float* vector;  // rms_norm: weight[cols]
  float epsilon;
};
using RowFn = void (*)(const RowArgs&);

/// Cosines and sines of a rotary embedding: row r is head_dim floats, cos(a_i) for i < head_dim / 2
/// and then sin(a_i), with a_i = position[r] * inverse_frequencies[i] rounded to fp32 first, as the
/// reference implementations do. Shared by all heads and layers of a step. Error below 1e-6 up to
/// a_i = 2^20.
struct RopeTableArgs {
  const int32_t* positions;
  const float* inverse_frequencies;
  float* cos_sin;
  int64_t stride;  // floats between rows
  int64_t rows;
  int32_t head_dim;
};
using RopeTableFn = void (*)(const RopeTableArgs&);

/// Rotary embedding in place, with the table above: (x_i, x_j) with j = i + head_dim / 2 becomes
/// (x_i cos - x_j sin, x_j cos + x_i sin).
struct RopeArgs {
  float* x;
  int64_t stride;
  int64_t rows;
  const float* cos_sin;
  int64_t cos_sin_stride;
  int32_t num_heads;
  int32_t head_dim;
};
using RopeFn = void (*)(const RopeArgs&);

/// What KV pages hold.
enum class KvType : uint8_t { kF32, kBF16, kF16 };

/// One layer's KV pages. A 16-token page of one kv head holds K as [d/u][16 tokens][u] and then V
/// as [16/u][d][u], with d = padded_dim and u = 1 for fp32 and 2 for the 16-bit types: panels for
/// the same micro-kernels as weights. Dimensions past head_dim are 0.
struct KvArgs {
  char* layer_base;  // block b at layer_base + b * block_bytes; inside:
                     // [block_tokens/16][kv_head][page_bytes]
  int64_t block_bytes;
  int64_t page_bytes;
  int32_t block_tokens;
  int32_t num_kv_heads;
  int32_t head_dim;    // even
  int32_t padded_dim;  // head_dim rounded up to a multiple of 16
  KvType type;
};

/// Stores k and v rows at their slots (slot -1 = skip). The first token of a 16-token page clears
/// the rest of that page, so that stale bytes (NaN) never reach a sum: tokens of one page must be
/// stored in order, by one thread.
struct StoreKvArgs {
  KvArgs kv;
  const float* k;
  const float* v;
  int64_t k_stride;  // floats
  int64_t v_stride;
  const int32_t* slots;
  int64_t rows;
};
using StoreKvFn = void (*)(const StoreKvArgs&);

/// The widest head attention kernels have room for.
inline constexpr int32_t kMaxHeadDim = 512;
/// Tokens of context one attention split covers; splits are summed apart and combined in order.
inline constexpr int64_t kAttentionSplit = 512;
/// How many tokens past a split, but inside the context, a kernel looks up in the block table.
inline constexpr int64_t kAttentionReach = 256;

/// Attention of `num_queries` consecutive query tokens of one sequence against one kv head and one
/// 512-token split. Query token i (position first_position + i) sees context positions (p - window,
/// p] (window 0 = all up to p). score = scale * q.k, and with soft_cap > 0 soft_cap * tanh(score /
/// soft_cap). For each query token and each of the group's query heads writes, for this split: the
/// unnormalised output [padded_dim], the maximum score and the sum of exp(score - maximum). A query
/// that sees none of the split gets output 0, maximum -inf and sum 0. Bits depend
/// on the query's own context only, not on its neighbours.
struct AttentionArgs {
  KvArgs kv;
  const int32_t* block_table;  // the sequence's, from first_block on
  int32_t first_block;
  int32_t kv_head;
  int32_t heads_per_kv;  // GQA group
  const float* q;        // query token 0, first head of the group; heads lie head_dim floats apart
  int64_t q_stride;      // floats between tokens
  int32_t num_queries;
  int32_t first_position;
  int32_t split;  // covers positions [512 * split, 512 * (split + 1))
  int32_t window;
  float scale;     // > 0
  float soft_cap;  // 0 = none
  /// What is likely computed next on this thread: pages whose keys are fetched meanwhile.
  const char* const* next_pages;
  int32_t num_next_pages;
  bool keys_fetched;   // this split's keys were, by the call before
  float* partial_out;  // [num_queries][heads_per_kv][padded_dim]
  float* partial_max;  // [num_queries][heads_per_kv]
  float* partial_sum;  // [num_queries][heads_per_kv]
};
using AttentionFn = void (*)(const AttentionArgs&);

/// Folds one split's partials into a running state, row by row: M = max(state, partial maximum);
/// state = exp(state max - M) * state + exp(partial max - M) * partial, outputs and sums alike. The
/// state starts at output 0, maximum -inf, sum 0; splits are folded in order 0, 1, 2, ..., so that
/// the bits are the same whether partials were kept or folded at once.
struct FoldArgs {
  const float* partial_out;  // [rows][padded_dim]
  const float* partial_max;  // [rows]
  const float* partial_sum;
  float* out;
  float* max;
  float* sum;
  int64_t rows;
  int32_t padded_dim;
};
using FoldFn = void (*)(const FoldArgs&);

/// Ends a fold: out row (r / heads, r % heads) = state output r / state sum r. Rows are (token,
/// head) of one kv head's group.
struct NormalizeArgs {
  const float* state;  // [rows][padded_dim]
  const float* sum;    // [rows]
  int64_t rows;
  int32_t heads;
  int32_t head_dim;
  int32_t padded_dim;
  float* out;          // token 0, first head; heads lie head_dim floats apart
  int64_t out_stride;  // floats between tokens
};
using NormalizeFn = void (*)(const NormalizeArgs&);

/// Indices of `matmul` below: how the weight is laid out x how activations arrive.
enum MatmulKind : int {
  kDenseF32_F32,
  kDenseF16_F32,
  kDenseBF16_F32,
  kDenseBF16_BF16,
  kInt8_F32,
  kInt8_BF16,
  kInt8_I8,
  kInt4_F32,
  kInt4_BF16,
  kInt4_I8,
  kNumMatmulKinds
};

struct KernelTable {
  const char* level = "";  // "scalar", "avx2", "avx512", "avx512_vnni_bf16"
  MatmulFn matmul[kNumMatmulKinds] = {};
  PrepareFn prepare_bf16 = nullptr;
  PrepareFn prepare_i8 = nullptr;
  RowFn rms_norm = nullptr;
  RowFn gated_act = nullptr;  // silu(a) * b
  RowFn add = nullptr;
  RopeTableFn rope_table = nullptr;
  RopeFn rope = nullptr;
  StoreKvFn store_kv = nullptr;
  AttentionFn attention = nullptr;
  FoldFn fold = nullptr;
  NormalizeFn normalize = nullptr;
};

// Each level overrides what it improves. matmul.cc of a level: matmul and prepare; ops.cc: the
// rest.
namespace scalar {
void fill_matmul(KernelTable&);
void fill_ops(KernelTable&);
}  // namespace scalar
namespace avx2 {
void fill_matmul(KernelTable&);
void fill_ops(KernelTable&);
}  // namespace avx2
namespace avx512 {
void fill_matmul(KernelTable&);
void fill_ops(KernelTable&);
}  // namespace avx512

}  // namespace quire::backend::cpu
