// The row operations and attention of this level.
#include "quire/backend/cpu/kernels.h"

#include "quire/backend/cpu/generic/simd_avx512.inc"

namespace quire::backend::cpu::avx512 {
namespace {

// Tile shapes of attention.inc: 24 accumulators, 4 lines and a factor of 32 registers.
constexpr int kTileRows = 6;
constexpr int kTilePages = 4;
constexpr int kTileColumns = 4;

/// x >= bound ? value : 0.
inline V16 keep_where_ge(V16 x, V16 bound, V16 value) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, bound.v, _CMP_GE_OQ), value.v)};
}
/// Lanes [begin, end) of x, `rest` in the others.
inline V16 keep_lanes(V16 x, int begin, int end, float rest) {
  const auto up_to = [](int n) { return n <= 0 ? __mmask16{0} : first_lanes(n); };
  const auto inside = static_cast<__mmask16>(up_to(end) & ~up_to(begin));
  return {_mm512_mask_mov_ps(_mm512_set1_ps(rest), inside, x.v)};
}

/// The fp16 in the low half of each lane.
inline V16 from_f16(VI16 words) {
  return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(words.v))};
}

#include "quire/backend/cpu/generic/ops.inc"

#include "quire/backend/cpu/generic/attention.inc"

/// bf16 pages through vdpbf16ps: queries and probabilities are rounded to bf16, sums are fp32.
/// The instruction flushes denormals and adds a pair's products to the accumulator in a fixed way.
struct KvBF16Dot {
  using Element = uint16_t;
  static constexpr int kUnit = 2;
  using Line = __m512i;
  using Factor = __m512i;
  static Line line(const char* p) { return _mm512_loadu_si512(p); }
  static Factor factor(const Element* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, 4);
    return _mm512_set1_epi32(pair);
  }
  static V16 mac(V16 acc, Line line, Factor factor) {
    // As assembly, since g++ 12 spills accumulators around the intrinsic.
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc.v) : "v"(line), "v"(factor));
    return acc;
  }
  static void narrow(Element* p, V16 x) {
    const __m256bh rounded = _mm512_cvtneps_pbh(x.v);
    __builtin_memcpy(p, &rounded, sizeof rounded);
  }
};

void attention(const AttentionArgs& args) {
  switch (args.kv.type) {
    case KvType::kF32:
      return attention_of<KvF32>(args);
    case KvType::kBF16:
      return attention_of<KvBF16Dot>(args);
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

}  // namespace quire::backend::cpu::avx512
