// The row operations and attention of this level.
#include "quire/backend/cpu/kernels.h"

#include "quire/backend/cpu/generic/simd_scalar.inc"

namespace quire::backend::cpu::scalar {
namespace {

// Tile shapes of attention.inc.
constexpr int kTileRows = 1;
constexpr int kTilePages = 1;
constexpr int kTileColumns = 1;

/// x >= bound ? value : 0.
inline V16 keep_where_ge(V16 x, V16 bound, V16 value) {
  return each([&](int i) { return x.v[i] >= bound.v[i] ? value.v[i] : 0.0f; });
}
/// Lanes [begin, end) of x, `rest` in the others.
inline V16 keep_lanes(V16 x, int begin, int end, float rest) {
  return each([&](int i) { return i >= begin && i < end ? x.v[i] : rest; });
}

/// The fp16 in the low half of each lane.
inline V16 from_f16(VI16 words) {
  return each([&](int i) { return f16_to_f32(static_cast<uint16_t>(words.v[i])); });
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

}  // namespace quire::backend::cpu::scalar
