#include "quire/backend/cpu/packer.h"

#include <algorithm>
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
    if (spec.dtype != DType::kF32 && spec.dtype != DType::kBF16) {
      throw LoadError(spec.name, "dtype", "F32 or BF16", dtype_name(spec.dtype));
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

void pack_bf16(const WeightRows& rows, int64_t count, int64_t in, uint16_t* panel) {
  QUIRE_CHECK(static_cast<int64_t>(rows.values.size()) >= count * in);
  for (int64_t lane = 0; lane < count; ++lane) {
    const float* row = rows.values.data() + lane * in;
    for (int64_t k = 0; k < in; ++k) {
      panel[(k / 2 * kPanel + lane) * 2 + k % 2] = f32_to_bf16(row[k]);
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

void pack_scales(const WeightSpec& spec, const WeightRows& rows, int64_t count, uint16_t* panel) {
  const int64_t groups = spec.num_groups();
  const bool has_min = spec.offset == Offset::kMin;
  const int64_t stride = has_min ? 2 * kPanel : kPanel;
  transpose(rows.scales, count, groups, panel,
            [=](int64_t g, int64_t lane) { return g * stride + lane; });
  if (!has_min) return;
  transpose(rows.mins, count, groups, panel,
            [=](int64_t g, int64_t lane) { return g * stride + kPanel + lane; });
}

/// Packs the rows of one panel. The buffers are zero where no row comes.
void pack_panel(PackedWeight& weight, int64_t panel, int64_t count, const WeightRows& rows) {
  const WeightSpec& spec = weight.spec;
  const int64_t panels = num_panels(spec.out);
  std::byte* data = weight.data.data() + panel * (packed_data_bytes(spec) / panels);
  switch (spec.layout) {
    case Layout::kDense:
      if (spec.dtype == DType::kBF16) {
        pack_bf16(rows, count, spec.in, reinterpret_cast<uint16_t*>(data));
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
  pack_scales(spec, rows, count,
              reinterpret_cast<uint16_t*>(weight.scales.data() + panel * scale_bytes));
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
  args.zero = spec.zero + (spec.layout == Layout::kInt8Group ? 128 : 0);
  args.has_min = spec.layout != Layout::kDense && spec.offset == Offset::kMin;
  args.num_slices = num_slices(spec);
  return args;
}

std::optional<MatmulKind> matmul_kind(const WeightSpec& spec, ActType activations) {
  switch (spec.layout) {
    case Layout::kDense:
      if (activations == ActType::kF32) {
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
