#include "quire/backend/packed_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "quire/base/check.h"

namespace quire::backend {
namespace {

constexpr int64_t kLineBytes = 64;

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

/// The code of input k of a group whose codes begin there.
int32_t code_at(Layout layout, const std::byte* codes, int64_t lane, int64_t k) {
  if (layout == Layout::kInt8Group) {
    return static_cast<uint8_t>(codes[(k / 4 * kPanel + lane) * 4 + k % 4]);
  }
  const int64_t j = k % 8;
  const auto byte = static_cast<uint8_t>(codes[(k / 8 * kPanel + lane) * 4 + j % 4]);
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

GroupDecoder packed_group(const WeightSpec& spec, const std::byte* panel, const GroupPlace& place,
                          int64_t lane) {
  const std::byte* at = panel + place.entry;
  const std::byte* super = panel + place.super;
  GroupDecoder decoder{.scale = 0, .zero = stored_zero(spec)};
  if (spec.super_group == 0) {
    decoder.scale = half_at(at, lane);
    if (spec.offset == Offset::kMin) decoder.min = half_at(at + 2 * kPanel, lane);
    if (spec.offset == Offset::kZeros) decoder.zero = static_cast<uint8_t>(at[2 * kPanel + lane]);
    return decoder;
  }
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

namespace {

/// Bytes of one group's entry.
int64_t entry_bytes(const WeightSpec& spec) {
  const int64_t number = spec.super_group == 0 ? 2 : 1;
  const int64_t offset = spec.offset == Offset::kMin     ? number
                         : spec.offset == Offset::kZeros ? 1
                                                         : 0;
  return kPanel * (number + offset);
}

int64_t group_code_bytes(const WeightSpec& spec) {
  return spec.group * kPanel / (spec.layout == Layout::kInt4Group ? 2 : 1);
}

/// Groups whose scales follow one line of a super-group's; all without a second level.
int64_t groups_per_super(const WeightSpec& spec) {
  return spec.super_group == 0 ? spec.num_groups() : spec.super_group / spec.group;
}

/// Bytes of a super-group's first `groups` groups, scales included.
int64_t bytes_of(const WeightSpec& spec, const PanelShape& shape, int64_t groups) {
  const int64_t blocks = (groups + shape.block_groups - 1) / shape.block_groups;
  return shape.super_bytes + blocks * shape.block_bytes + groups * group_code_bytes(spec);
}

}  // namespace

PanelShape panel_shape(const WeightSpec& spec) {
  PanelShape shape = {};
  shape.slices = num_slices(spec);
  const int64_t inputs = spec.in / shape.slices;
  if (spec.layout == Layout::kDense) {
    const int64_t lines = spec.dtype == DType::kF32 ? inputs : (inputs + 1) / 2;
    shape.code_bytes = shape.slice_bytes = lines * kLineBytes;
    return shape;
  }
  shape.groups = inputs / spec.group;
  shape.code_bytes = shape.groups * group_code_bytes(spec);
  const int64_t bytes = std::lcm(entry_bytes(spec), kLineBytes);
  shape.block_groups = bytes / entry_bytes(spec);
  shape.block_bytes = bytes;
  shape.super_bytes = spec.super_group == 0 ? 0 : kLineBytes;
  // Slices are equally long, though a super-group's end may fall differently.
  int64_t longest = 0;
  for (int64_t s = 0; s < shape.slices; ++s) {
    const GroupPlace last = group_place(spec, shape, (s + 1) * shape.groups - 1);
    longest = std::max(longest, last.codes + group_code_bytes(spec));
  }
  shape.slice_bytes = longest;
  return shape;
}

GroupPlace group_place(const WeightSpec& spec, const PanelShape& shape, int64_t group) {
  const int64_t per_super = groups_per_super(spec);
  const int64_t slice = group / shape.groups;
  const int64_t first = slice * shape.groups;
  const int64_t in_super = group % per_super;
  // Where the part of the group's super-group that the slice has begins.
  const int64_t begin = std::max(first, group - in_super);
  int64_t at = slice * shape.slice_bytes;
  if (begin != first) {
    const int64_t whole = (begin - first) / per_super;
    const int64_t cut = (begin - first) % per_super;
    at += whole * bytes_of(spec, shape, per_super);
    if (cut != 0) at += bytes_of(spec, shape, cut);
  }
  const int64_t inside = group - begin;
  const int64_t block = inside / shape.block_groups;
  const int64_t block_begin = at + shape.super_bytes + block * shape.block_bytes +
                              block * shape.block_groups * group_code_bytes(spec);
  return {.codes = block_begin + shape.block_bytes +
                   inside % shape.block_groups * group_code_bytes(spec),
          .entry = block_begin + inside % shape.block_groups * entry_bytes(spec),
          .super = at};
}

int64_t scale_bytes(const WeightSpec& spec) {
  if (spec.layout == Layout::kDense) return 0;
  const int64_t super_lane = spec.offset == Offset::kMin ? 4 : 2;
  return spec.out *
         (spec.num_groups() * entry_bytes(spec) / kPanel + spec.num_super_groups() * super_lane);
}

int64_t packed_code_bytes(const WeightSpec& spec) {
  const PanelShape shape = panel_shape(spec);
  return num_panels(spec.out) * shape.slices * shape.code_bytes;
}

int64_t packed_scale_bytes(const WeightSpec& spec) {
  const PanelShape shape = panel_shape(spec);
  return num_panels(spec.out) * shape.slices * (shape.slice_bytes - shape.code_bytes);
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
  const PanelShape shape = panel_shape(spec);
  const std::byte* begin = weight.data.data() + panel * shape.panel_bytes();
  for (int64_t g = 0; g < spec.num_groups(); ++g) {
    const GroupPlace place = group_place(spec, shape, g);
    const GroupDecoder decode = packed_group(spec, begin, place, lane);
    for (int64_t k = 0; k < spec.group; ++k) {
      out[g * spec.group + k] = decode(code_at(spec.layout, begin + place.codes, lane, k));
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
