// The row operations and attention of this level.
#include "quire/backend/cpu/kernels.h"

#include "quire/backend/cpu/generic/simd_avx2.inc"

namespace quire::backend::cpu::avx2 {
namespace {

// Tile shapes of attention.inc: what 16 registers hold.
constexpr int kTileRows = 4;
constexpr int kTilePages = 1;
constexpr int kTileColumns = 1;

/// x >= bound ? value : 0.
inline V16 keep_where_ge(V16 x, V16 bound, V16 value) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.lo, bound.lo, _CMP_GE_OQ), value.lo),
          _mm256_and_ps(_mm256_cmp_ps(x.hi, bound.hi, _CMP_GE_OQ), value.hi)};
}
/// Lanes [begin, end) of x, `rest` in the others.
inline V16 keep_lanes(V16 x, int begin, int end, float rest) {
  const auto half = [&](__m256 v, int offset) {
    const __m256i inside =
        _mm256_andnot_si256(first_lanes(begin - offset), first_lanes(end - offset));
    return _mm256_blendv_ps(_mm256_set1_ps(rest), v, _mm256_castsi256_ps(inside));
  };
  return {half(x.lo, 0), half(x.hi, 8)};
}

#include "quire/backend/cpu/generic/ops.inc"

#include "quire/backend/cpu/generic/attention.inc"

void attention(const AttentionArgs& args) {
  return args.kv.is_bf16 ? attention_of<KvBF16Widened>(args) : attention_of<KvF32>(args);
}

}  // namespace

void fill_ops(KernelTable& table) {
  table.rms_norm = rms_norm;
  table.gated_act = gated_act;
  table.add = add_rows;
  table.rope_table = rope_table;
  table.rope = rope;
  table.store_kv = store_kv;
  table.attention = attention;
  table.fold = fold;
  table.normalize = normalize;
}

}  // namespace quire::backend::cpu::avx2
