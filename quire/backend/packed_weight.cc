#include "quire/backend/packed_weight.h"

#include <cmath>
#include <cstring>

#include "quire/base/check.h"

namespace quire::backend {
namespace {

// The address arithmetic of the layouts documented in packed_weight.h, one element at a time.

float dense_at(const PackedWeight& w, int64_t panel, int64_t lane, int64_t k) {
  const int64_t pair = (panel * ((w.spec.in + 1) / 2) + k / 2) * kPanel * 2;
  const auto* halves = reinterpret_cast<const uint16_t*>(w.data.data());
  switch (w.spec.dtype) {
    case DType::kBF16:
      return bf16_to_f32(halves[pair + lane * 2 + k % 2]);
    case DType::kF16:
      return f16_to_f32(halves[pair + k % 2 * kPanel + lane]);
    default:
      return reinterpret_cast<const float*>(w.data.data())[(panel * w.spec.in + k) * kPanel + lane];
  }
}

int32_t code_at(const PackedWeight& w, int64_t panel, int64_t lane, int64_t k) {
  const auto* data = reinterpret_cast<const uint8_t*>(w.data.data());
  if (w.spec.layout == Layout::kInt8Group) {
    return data[((panel * (w.spec.in / 4) + k / 4) * kPanel + lane) * 4 + k % 4];
  }
  const int64_t j = k % 8;
  const uint8_t byte = data[((panel * (w.spec.in / 8) + k / 8) * kPanel + lane) * 4 + j % 4];
  return j < 4 ? byte & 15 : byte >> 4;
}

/// What turns a group's stored codes into numbers: fma(scale, code - zero, min).
struct GroupDecoder {
  float scale;
  float min = -0.0f;  // added, it changes no number
  int32_t zero;

  float operator()(int32_t code) const {
    return std::fma(scale, static_cast<float>(code - zero), min);
  }
};

int32_t stored_zero(const WeightSpec& spec) {
  const bool is_signed = spec.layout == Layout::kInt8Group && spec.offset != Offset::kZeros;
  return spec.zero + (is_signed ? 128 : 0);
}

float half_at(const std::byte* at, int64_t lane) {
  uint16_t bits;
  std::memcpy(&bits, at + 2 * lane, 2);
  return f16_to_f32(bits);
}

GroupDecoder packed_group(const PackedWeight& w, int64_t panel, int64_t lane, int64_t group) {
  const WeightSpec& spec = w.spec;
  const int64_t entry = group_entry_bytes(spec);
  const std::byte* stream =
      w.scales.data() + panel * (packed_scale_bytes(spec) / num_panels(spec.out));
  GroupDecoder decoder{.scale = 0, .zero = stored_zero(spec)};
  if (spec.super_group == 0) {
    const std::byte* at = stream + group * entry;
    decoder.scale = half_at(at, lane);
    if (spec.offset == Offset::kMin) decoder.min = half_at(at + 2 * kPanel, lane);
    if (spec.offset == Offset::kZeros) decoder.zero = static_cast<uint8_t>(at[2 * kPanel + lane]);
    return decoder;
  }
  const int64_t groups = spec.super_group / spec.group;
  const int64_t own = super_entry_bytes(spec);
  const std::byte* super = stream + group / groups * (own + groups * entry);
  const std::byte* at = super + own + group % groups * entry;
  const auto byte = [&](int64_t i) { return static_cast<float>(static_cast<int8_t>(at[i])); };
  decoder.scale = half_at(super, lane) * byte(lane);
  if (spec.offset == Offset::kMin) {
    decoder.min = half_at(super + 2 * kPanel, lane) * byte(kPanel + lane);
  }
  return decoder;
}

GroupDecoder read_group(const WeightSpec& spec, const WeightRows& rows, int64_t row,
                        int64_t group) {
  const auto at = static_cast<size_t>(row * spec.num_groups() + group);
  GroupDecoder decoder{.scale = 0, .zero = stored_zero(spec)};
  if (spec.super_group == 0) {
    decoder.scale = f16_to_f32(rows.scales[at]);
    if (spec.offset == Offset::kMin) decoder.min = f16_to_f32(rows.mins[at]);
    if (spec.offset == Offset::kZeros) decoder.zero = rows.zeros[at];
    return decoder;
  }
  const auto super =
      static_cast<size_t>(row * spec.num_super_groups() + group / (spec.super_group / spec.group));
  decoder.scale = f16_to_f32(rows.scales[super]) * static_cast<float>(rows.sub_scales[at]);
  if (spec.offset == Offset::kMin) {
    decoder.min = f16_to_f32(rows.mins[super]) * static_cast<float>(rows.sub_mins[at]);
  }
  return decoder;
}

float rounded_to(DType dtype, float value) {
  if (dtype == DType::kBF16) return bf16_to_f32(f32_to_bf16(value));
  return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(value)) : value;
}

}  // namespace

int64_t packed_data_bytes(const WeightSpec& spec) {
  const int64_t panels = num_panels(spec.out);
  switch (spec.layout) {
    case Layout::kDense:
      if (spec.dtype != DType::kF32) return panels * ((spec.in + 1) / 2) * kPanel * 4;
      return panels * spec.in * kPanel * 4;
    case Layout::kInt8Group:
      return panels * spec.in * kPanel;
    case Layout::kInt4Group:
      return panels * spec.in * kPanel / 2;
  }
  return 0;
}

int64_t group_entry_bytes(const WeightSpec& spec) {
  if (spec.layout == Layout::kDense) return 0;
  const int64_t number = spec.super_group == 0 ? 2 : 1;
  const int64_t offset = spec.offset == Offset::kMin     ? number
                         : spec.offset == Offset::kZeros ? 1
                                                         : 0;
  return kPanel * (number + offset);
}

int64_t super_entry_bytes(const WeightSpec& spec) {
  if (spec.super_group == 0) return 0;
  return kPanel * (spec.offset == Offset::kMin ? 4 : 2);
}

int64_t packed_scale_bytes(const WeightSpec& spec) {
  return num_panels(spec.out) * (spec.num_groups() * group_entry_bytes(spec) +
                                 spec.num_super_groups() * super_entry_bytes(spec));
}

void unpack_row(const PackedWeight& weight, int64_t index, float* out) {
  const WeightSpec& spec = weight.spec;
  QUIRE_CHECK(index >= 0 && index < spec.out);
  const int64_t panel = index / kPanel;
  const int64_t lane = index % kPanel;
  if (spec.layout == Layout::kDense) {
    for (int64_t k = 0; k < spec.in; ++k) out[k] = dense_at(weight, panel, lane, k);
    return;
  }
  for (int64_t g = 0; g < spec.num_groups(); ++g) {
    const GroupDecoder decode = packed_group(weight, panel, lane, g);
    for (int64_t k = g * spec.group; k < (g + 1) * spec.group; ++k) {
      out[k] = decode(code_at(weight, panel, lane, k));
    }
  }
}

void decode_row(const WeightSpec& spec, const WeightRows& rows, int64_t row, float* out) {
  const auto first = static_cast<size_t>(row * spec.in);
  if (spec.layout == Layout::kDense) {
    for (int64_t k = 0; k < spec.in; ++k) {
      out[k] = rounded_to(spec.dtype, rows.values[first + static_cast<size_t>(k)]);
    }
    return;
  }
  for (int64_t g = 0; g < spec.num_groups(); ++g) {
    const GroupDecoder decode = read_group(spec, rows, row, g);
    for (int64_t k = g * spec.group; k < (g + 1) * spec.group; ++k) {
      out[k] = decode(rows.codes[first + static_cast<size_t>(k)]);
    }
  }
}

}  // namespace quire::backend
