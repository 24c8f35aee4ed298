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

/// The fp16 in the low half of each lane.
inline V16 from_f16(VI16 words) {
  const VI16 low = iand(words, iset1(0xffff));
  const __m256i packed = _mm256_packus_epi32(low.lo, low.hi);  // four lanes of each in turn
  const __m256i ordered = _mm256_permute4x64_epi64(packed, 0xd8);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(ordered)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(ordered, 1))};
}

#include "quire/backend/cpu/generic/ops.inc"

#include "quire/backend/cpu/generic/attention.inc"

void attention(const AttentionArgs& args) {
  switch (args.kv.type) {
    case KvType::kF32:
      return attention_of<KvF32>(args);
    case KvType::kBF16:
      return attention_of<KvBF16Widened>(args);
    case KvType::kF16:
      return attention_of<KvF16Widened>(args);
  }
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
