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

/// `rows` holds `count` (1 to 16) rows of `in` elements; missing rows become zeros. Lane l of input
/// k goes to panel[at(k, l)].
template <class T, class At>
void transpose(const std::vector<T>& rows, int64_t count, int64_t in, T* panel, At at) {
  QUIRE_CHECK(static_cast<int64_t>(rows.size()) >= count * in);
  for (int64_t lane = 0; lane < count; ++lane) {
    const T* row = rows.data() + lane * in;
    for (int64_t k = 0; k < in; ++k) panel[at(k, lane)] = row[k];
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

void pack_int4(const WeightRows& rows, int64_t count, int64_t in, uint8_t* panel) {
  QUIRE_CHECK(static_cast<int64_t>(rows.codes.size()) >= count * in);
  for (int64_t lane = 0; lane < count; ++lane) {
    const uint8_t* row = rows.codes.data() + lane * in;
    uint8_t* line = panel + lane * 4;
    for (int64_t k = 0; k < in; k += 8, line += kPanel * 4) {
      for (int64_t b = 0; b < 4; ++b) {
        line[b] = static_cast<uint8_t>((row[k + b] & 15) | (row[k + 4 + b] & 15) << 4);
      }
    }
  }
}

/// A panel's stream of scales: entries of 16 lanes, a super-group's before those of its groups.
class ScaleStream {
 public:
  ScaleStream(const WeightSpec& spec, int64_t count, std::byte* stream)
      : spec_(spec),
        count_(count),
        stream_(stream),
        entry_(group_entry_bytes(spec)),
        own_(super_entry_bytes(spec)),
        per_super_(spec.super_group == 0 ? spec.num_groups() : spec.super_group / spec.group) {}

  /// Element [lane][g] of `rows` to lane `lane`, `at` bytes into the entry of group g.
  template <class T>
  void put_groups(const std::vector<T>& rows, int64_t at) {
    put(rows, spec_.num_groups(),
        [=, this](int64_t g) { return (g / per_super_ + 1) * own_ + g * entry_ + at; });
  }
  /// The same into the entries of super-groups.
  template <class T>
  void put_supers(const std::vector<T>& rows, int64_t at) {
    put(rows, spec_.num_super_groups(),
        [=, this](int64_t s) { return s * (own_ + per_super_ * entry_) + at; });
  }

 private:
  template <class T, class Place>
  void put(const std::vector<T>& rows, int64_t num, Place place) {
    QUIRE_CHECK(static_cast<int64_t>(rows.size()) >= count_ * num);
    for (int64_t lane = 0; lane < count_; ++lane) {
      for (int64_t i = 0; i < num; ++i) {
        const T value = rows[static_cast<size_t>(lane * num + i)];
        std::memcpy(stream_ + place(i) + lane * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
      }
    }
  }

  const WeightSpec& spec_;
  int64_t count_;
  std::byte* stream_;
  int64_t entry_;
  int64_t own_;
  int64_t per_super_;
};

void pack_scales(const WeightSpec& spec, const WeightRows& rows, int64_t count, std::byte* stream) {
  ScaleStream to(spec, count, stream);
  const bool has_min = spec.offset == Offset::kMin;
  if (spec.super_group != 0) {
    to.put_supers(rows.scales, 0);
    to.put_groups(rows.sub_scales, 0);
    if (has_min) to.put_supers(rows.mins, 2 * kPanel);
    if (has_min) to.put_groups(rows.sub_mins, kPanel);
    return;
  }
  to.put_groups(rows.scales, 0);
  if (has_min) to.put_groups(rows.mins, 2 * kPanel);
  if (spec.offset == Offset::kZeros) to.put_groups(rows.zeros, 2 * kPanel);
}

/// Packs the rows of one panel. The buffers are zero where no row comes.
void pack_panel(PackedWeight& weight, int64_t panel, int64_t count, const WeightRows& rows) {
  const WeightSpec& spec = weight.spec;
  const int64_t panels = num_panels(spec.out);
  std::byte* data = weight.data.data() + panel * (packed_data_bytes(spec) / panels);
  switch (spec.layout) {
    case Layout::kDense:
      if (spec.dtype != DType::kF32) {
        pack_halves(spec, rows, count, reinterpret_cast<uint16_t*>(data));
      } else {
        transpose(rows.values, count, spec.in, reinterpret_cast<float*>(data),
                  [](int64_t k, int64_t lane) { return k * kPanel + lane; });
      }
      return;
    case Layout::kInt8Group:
      transpose(rows.codes, count, spec.in, reinterpret_cast<uint8_t*>(data),
                [](int64_t k, int64_t lane) { return (k / 4 * kPanel + lane) * 4 + k % 4; });
      break;
    case Layout::kInt4Group:
      pack_int4(rows, count, spec.in, reinterpret_cast<uint8_t*>(data));
      break;
  }
  const int64_t scale_bytes = packed_scale_bytes(spec) / panels;
  pack_scales(spec, rows, count, weight.scales.data() + panel * scale_bytes);
}

}  // namespace

std::shared_ptr<const PackedWeight> pack_weight(const WeightReader& reader, MemoryLedger* ledger,
                                                const ParallelFor& parallel_for) {
  const WeightSpec& spec = reader.spec();
  check_spec(spec);
  auto weight = std::make_shared<PackedWeight>();
  weight->spec = spec;
  weight->data = HugeBuffer(packed_data_bytes(spec), MemoryTag::kWeights, ledger);
  if (spec.layout != Layout::kDense) {
    weight->scales = HugeBuffer(packed_scale_bytes(spec), MemoryTag::kWeights, ledger);
  }
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
  const int64_t panels = num_panels(spec.out);
  WeightArgs args = {};
  args.data = weight.data.data();
  args.scales = reinterpret_cast<const uint16_t*>(weight.scales.data());
  args.in = spec.in;
  args.out = spec.out;
  args.group = spec.layout == Layout::kDense ? 0 : spec.group;
  args.panel_bytes = packed_data_bytes(spec) / panels;
  args.scale_stride = packed_scale_bytes(spec) / panels / 2;
  args.has_min = spec.layout != Layout::kDense && spec.offset == Offset::kMin;
  args.has_zeros = spec.layout != Layout::kDense && spec.offset == Offset::kZeros;
  args.zero = spec.zero + (spec.layout == Layout::kInt8Group && !args.has_zeros ? 128 : 0);
  args.groups_per_super = spec.super_group == 0 ? 0 : spec.super_group / spec.group;
  args.num_slices = num_slices(spec);
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
