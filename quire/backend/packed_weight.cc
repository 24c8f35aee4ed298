#include "quire/backend/packed_weight.h"

#include <cmath>

#include "quire/base/check.h"

namespace quire::backend {
namespace {

// The address arithmetic of the layouts documented in packed_weight.h, one element at a time.

float dense_f32_at(const PackedWeight& w, int64_t panel, int64_t lane, int64_t k) {
  const auto* data = reinterpret_cast<const float*>(w.data.data());
  return data[(panel * w.spec.in + k) * kPanel + lane];
}

float dense_bf16_at(const PackedWeight& w, int64_t panel, int64_t lane, int64_t k) {
  const auto* data = reinterpret_cast<const uint16_t*>(w.data.data());
  const int64_t pairs = (w.spec.in + 1) / 2;
  return bf16_to_f32(data[((panel * pairs + k / 2) * kPanel + lane) * 2 + k % 2]);
}

int32_t int8_code_at(const PackedWeight& w, int64_t panel, int64_t lane, int64_t k) {
  const auto* data = reinterpret_cast<const uint8_t*>(w.data.data());
  return data[((panel * (w.spec.in / 4) + k / 4) * kPanel + lane) * 4 + k % 4] - 128;
}

int32_t int4_code_at(const PackedWeight& w, int64_t panel, int64_t lane, int64_t k) {
  const auto* data = reinterpret_cast<const uint8_t*>(w.data.data());
  const int64_t j = k % 8;
  const uint8_t byte = data[((panel * (w.spec.in / 8) + k / 8) * kPanel + lane) * 4 + j % 4];
  return j < 4 ? byte & 15 : byte >> 4;
}

}  // namespace

int64_t packed_data_bytes(const WeightSpec& spec) {
  const int64_t panels = num_panels(spec.out);
  switch (spec.layout) {
    case Layout::kDense:
      if (spec.dtype == DType::kBF16) return panels * ((spec.in + 1) / 2) * kPanel * 4;
      return panels * spec.in * kPanel * 4;
    case Layout::kInt8Group:
      return panels * spec.in * kPanel;
    case Layout::kInt4Group:
      return panels * spec.in * kPanel / 2;
  }
  return 0;
}

int64_t packed_scale_bytes(const WeightSpec& spec) {
  if (spec.layout == Layout::kDense) return 0;
  const int64_t per_group = kPanel * 2 * (spec.offset == Offset::kMin ? 2 : 1);
  return num_panels(spec.out) * spec.num_groups() * per_group;
}

void unpack_row(const PackedWeight& weight, int64_t index, float* out) {
  const WeightSpec& spec = weight.spec;
  QUIRE_CHECK(index >= 0 && index < spec.out);
  const int64_t panel = index / kPanel;
  const int64_t lane = index % kPanel;
  if (spec.layout == Layout::kDense) {
    const bool bf16 = spec.dtype == DType::kBF16;
    for (int64_t k = 0; k < spec.in; ++k) {
      out[k] = bf16 ? dense_bf16_at(weight, panel, lane, k) : dense_f32_at(weight, panel, lane, k);
    }
    return;
  }
  const bool has_min = spec.offset == Offset::kMin;
  const int64_t group_stride = has_min ? 2 * kPanel : kPanel;
  const auto* scales = reinterpret_cast<const uint16_t*>(weight.scales.data());
  const auto* panel_scales = scales + panel * spec.num_groups() * group_stride;
  for (int64_t k = 0; k < spec.in; ++k) {
    const uint16_t* group = panel_scales + k / spec.group * group_stride;
    const float scale = f16_to_f32(group[lane]);
    const float min = has_min ? f16_to_f32(group[kPanel + lane]) : 0.0f;
    const int32_t code = spec.layout == Layout::kInt8Group ? int8_code_at(weight, panel, lane, k)
                                                           : int4_code_at(weight, panel, lane, k);
    out[k] = std::fma(scale, static_cast<float>(code - spec.zero), min);
  }
}

}  // namespace quire::backend
