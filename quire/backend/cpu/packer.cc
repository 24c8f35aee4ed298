#include "quire/backend/cpu/packer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "quire/backend/cpu/generic/matmul_order.h"
#include "quire/base/check.h"
#include "quire/base/error.h"

namespace quire::backend::cpu {
namespace {

/// Panels one call packs: enough to make a call worthwhile, few enough to share out small weights.
constexpr int64_t kChunkPanels = 4;
/// Keeps int32 dots of a group exact: 65536 * 255 * 127 < 2^31.
constexpr int64_t kMaxGroup = 65536;

void require(bool holds, const WeightSpec& spec, const char* field, const std::string& expected,
             int64_t found) {
  if (!holds) throw LoadError(spec.name, field, expected, std::to_string(found));
}

void check_spec(const WeightSpec& spec) {
  require(spec.in >= 1 && spec.in <= kMaxMatmulInputs, spec, "inputs",
          "1 to " + std::to_string(kMaxMatmulInputs), spec.in);
  require(spec.out >= 1, spec, "outputs", "at least 1", spec.out);
  if (spec.layout == Layout::kDense) {
    if (spec.dtype != DType::kF32 && spec.dtype != DType::kBF16 && spec.dtype != DType::kF16) {
      throw LoadError(spec.name, "dtype", "F32, BF16 or F16", dtype_name(spec.dtype));
    }
    return;
  }
  require(spec.group >= 8 && spec.group % 8 == 0 && spec.group <= kMaxGroup, spec, "group",
          "a multiple of 8 up to " + std::to_string(kMaxGroup), spec.group);
  require(spec.in % spec.group == 0, spec, "inputs", "a multiple of " + std::to_string(spec.group),
          spec.in);
  const bool int8 = spec.layout == Layout::kInt8Group;
  require(spec.zero >= 0 && spec.zero <= (int8 ? 0 : 15), spec, "zero", int8 ? "0" : "0 to 15",
          spec.zero);
  require(spec.num_groups() / num_slices(spec) <= kMaxSliceGroups, spec, "groups",
          "at most " + std::to_string(kMaxSliceGroups) + " a slice",
          spec.num_groups() / num_slices(spec));
  if (spec.super_group == 0) return;
  require(spec.super_group % spec.group == 0 && spec.in % spec.super_group == 0, spec,
          "super-group",
          "whole groups of " + std::to_string(spec.group) + " that divide " +
              std::to_string(spec.in) + " inputs",
          spec.super_group);
  if (spec.offset == Offset::kZeros) {
    throw LoadError(spec.name, "zeros", "scales of one level beside them", "two");
  }
}

/// Inputs [first, first + inputs) of a panel's rows, and where their codes go.
struct Part {
  std::byte* codes;
  int64_t first;
  int64_t inputs;
};

/// Lane l of the part's input k goes to codes[at(k, l)]; rows that are missing stay zeros.
template <class T, class At>
void transpose(const std::vector<T>& rows, int64_t count, int64_t in, const Part& part, At at) {
  QUIRE_CHECK(static_cast<int64_t>(rows.size()) >= count * in);
  auto* codes = reinterpret_cast<T*>(part.codes);
  for (int64_t lane = 0; lane < count; ++lane) {
    const T* row = rows.data() + lane * in + part.first;
    for (int64_t k = 0; k < part.inputs; ++k) codes[at(k, lane)] = row[k];
  }
}

/// bf16: the pair's inputs side by side in a lane; fp16: one input's 16 lanes after the other's.
void pack_halves(const WeightSpec& spec, const WeightRows& rows, int64_t count, uint16_t* panel) {
  QUIRE_CHECK(static_cast<int64_t>(rows.values.size()) >= count * spec.in);
  const bool bf16 = spec.dtype == DType::kBF16;
  for (int64_t lane = 0; lane < count; ++lane) {
    const float* row = rows.values.data() + lane * spec.in;
    for (int64_t k = 0; k < spec.in; ++k) {
      uint16_t* pair = panel + k / 2 * kPanel * 2;
      if (bf16) {
        pair[lane * 2 + k % 2] = f32_to_bf16(row[k]);
      } else {
        pair[k % 2 * kPanel + lane] = f32_to_f16(row[k]);
      }
    }
  }
}

void pack_int4(const WeightRows& rows, int64_t count, int64_t in, const Part& part) {
  QUIRE_CHECK(static_cast<int64_t>(rows.codes.size()) >= count * in);
  for (int64_t lane = 0; lane < count; ++lane) {
    const uint8_t* row = rows.codes.data() + lane * in + part.first;
    auto* line = reinterpret_cast<uint8_t*>(part.codes) + lane * 4;
    for (int64_t k = 0; k < part.inputs; k += 8, line += kPanel * 4) {
      for (int64_t b = 0; b < 4; ++b) {
        line[b] = static_cast<uint8_t>((row[k + b] & 15) | (row[k + 4 + b] & 15) << 4);
      }
    }
  }
}

void pack_dense(const WeightSpec& spec, const WeightRows& rows, int64_t count, std::byte* panel) {
  if (spec.dtype != DType::kF32) {
    pack_halves(spec, rows, count, reinterpret_cast<uint16_t*>(panel));
    return;
  }
  transpose(rows.values, count, spec.in, {panel, 0, spec.in},
            [](int64_t k, int64_t lane) { return k * kPanel + lane; });
}

/// One group's entry, and its super-group's line: once more for each of its groups.
void pack_entry(const WeightSpec& spec, const WeightRows& rows, int64_t count, int64_t group,
                const GroupPlace& place, std::byte* panel) {
  const auto put = [&](const auto& from, int64_t num, int64_t index, int64_t at) {
    QUIRE_CHECK(static_cast<int64_t>(from.size()) >= count * num);
    constexpr auto kSize = static_cast<int64_t>(sizeof(from[0]));
    for (int64_t lane = 0; lane < count; ++lane) {
      std::memcpy(panel + at + lane * kSize, &from[static_cast<size_t>(lane * num + index)], kSize);
    }
  };
  const int64_t groups = spec.num_groups();
  const bool has_min = spec.offset == Offset::kMin;
  if (spec.super_group != 0) {
    const int64_t supers = spec.num_super_groups();
    const int64_t super = group / (spec.super_group / spec.group);
    put(rows.scales, supers, super, place.super);
    put(rows.sub_scales, groups, group, place.entry);
    if (has_min) put(rows.mins, supers, super, place.super + 2 * kPanel);
    if (has_min) put(rows.sub_mins, groups, group, place.entry + kPanel);
    return;
  }
  put(rows.scales, groups, group, place.entry);
  if (has_min) put(rows.mins, groups, group, place.entry + 2 * kPanel);
  if (spec.offset == Offset::kZeros) put(rows.zeros, groups, group, place.entry + 2 * kPanel);
}

/// Packs the rows of one panel. The buffer is zero where no row comes.
void pack_panel(PackedWeight& weight, int64_t panel, int64_t count, const WeightRows& rows) {
  const WeightSpec& spec = weight.spec;
  const PanelShape shape = panel_shape(spec);
  std::byte* begin = weight.data.data() + panel * shape.panel_bytes();
  if (spec.layout == Layout::kDense) return pack_dense(spec, rows, count, begin);
  for (int64_t g = 0; g < spec.num_groups(); ++g) {
    const GroupPlace place = group_place(spec, shape, g);
    pack_entry(spec, rows, count, g, place, begin);
    const Part part{begin + place.codes, g * spec.group, spec.group};
    if (spec.layout == Layout::kInt4Group) {
      pack_int4(rows, count, spec.in, part);
    } else {
      transpose(rows.codes, count, spec.in, part,
                [](int64_t k, int64_t lane) { return (k / 4 * kPanel + lane) * 4 + k % 4; });
    }
  }
}

}  // namespace

std::shared_ptr<const PackedWeight> pack_weight(const WeightReader& reader, MemoryLedger* ledger,
                                                const ParallelFor& parallel_for) {
  const WeightSpec& spec = reader.spec();
  check_spec(spec);
  auto weight = std::make_shared<PackedWeight>();
  weight->spec = spec;
  weight->data = HugeBuffer(weight->bytes(), MemoryTag::kWeights, ledger);
  const int64_t panels = num_panels(spec.out);
  parallel_for((panels + kChunkPanels - 1) / kChunkPanels, [&](int64_t chunk) {
    WeightRows rows;
    const int64_t end = std::min(panels, (chunk + 1) * kChunkPanels);
    for (int64_t panel = chunk * kChunkPanels; panel < end; ++panel) {
      const int64_t count = std::min(kPanel, spec.out - panel * kPanel);
      reader.read(panel * kPanel, count, rows);
      pack_panel(*weight, panel, count, rows);
    }
  });
  reader.done();
  return weight;
}

WeightArgs weight_args(const PackedWeight& weight) {
  const WeightSpec& spec = weight.spec;
  const PanelShape shape = panel_shape(spec);
  WeightArgs args = {};
  args.data = weight.data.data();
  args.in = spec.in;
  args.out = spec.out;
  args.group = spec.layout == Layout::kDense ? 0 : spec.group;
  args.panel_bytes = shape.panel_bytes();
  args.slice_bytes = shape.slice_bytes;
  args.block_groups = shape.block_groups;
  args.block_bytes = shape.block_bytes;
  args.super_bytes = shape.super_bytes;
  args.has_min = spec.layout != Layout::kDense && spec.offset == Offset::kMin;
  args.has_zeros = spec.layout != Layout::kDense && spec.offset == Offset::kZeros;
  args.zero = spec.zero + (spec.layout == Layout::kInt8Group && !args.has_zeros ? 128 : 0);
  args.groups_per_super = spec.super_group == 0 ? 0 : spec.super_group / spec.group;
  args.num_slices = shape.slices;
  return args;
}

std::optional<MatmulKind> matmul_kind(const WeightSpec& spec, ActType activations) {
  switch (spec.layout) {
    case Layout::kDense:
      if (activations == ActType::kF32) {
        if (spec.dtype == DType::kF16) return kDenseF16_F32;
        return spec.dtype == DType::kBF16 ? kDenseBF16_F32 : kDenseF32_F32;
      }
      if (activations == ActType::kBF16 && spec.dtype == DType::kBF16) return kDenseBF16_BF16;
      return std::nullopt;
    case Layout::kInt8Group:
      if (activations == ActType::kF32) return kInt8_F32;
      return activations == ActType::kBF16 ? kInt8_BF16 : kInt8_I8;
    case Layout::kInt4Group:
      if (activations == ActType::kF32) return kInt4_F32;
      return activations == ActType::kBF16 ? kInt4_BF16 : kInt4_I8;
  }
  return std::nullopt;
}

}  // namespace quire::backend::cpu
