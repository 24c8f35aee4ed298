// MatmulCase: seeded random weights and activations for the tests and benches of matmul kernels.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quire/backend/cpu/kernels.h"
#include "quire/backend/cpu/packer.h"
#include "quire/backend/packed_weight.h"
#include "quire/backend/program.h"
#include "quire/base/check.h"

namespace quire::backend::cpu {

/// A 64-bit mix of its argument (splitmix64): random numbers by index.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
/// Uniform in [-1, 1), by index.
constexpr float random_float(uint64_t seed, uint64_t index) {
  return static_cast<float>(static_cast<int64_t>(mix(seed ^ mix(index)) >> 40) - (1 << 23)) *
         0x1p-23f;
}

/// A weight of random values: dense in [-1, 1), or random codes with scales around 1/128, mins in
/// [-1/16, 1/16) and any zeros.
class RandomWeight : public WeightReader {
 public:
  RandomWeight(WeightSpec spec, uint64_t seed) : spec_(std::move(spec)), seed_(seed) {}
  const WeightSpec& spec() const override { return spec_; }
  void read(int64_t begin, int64_t count, WeightRows& rows) const override;

 private:
  WeightSpec spec_;
  uint64_t seed_;
};

/// Rows of fp32 activations in [-1, 1) and the same as `act` holds them.
struct Activations {
  Activations(int64_t num_rows, int64_t num_cols, uint64_t seed);
  /// Makes `held`: fp32 copied, or prepared by `table`.
  void hold(const KernelTable& table, ActType act, int64_t group_inputs);
  /// Element (row, k) as it is held, exactly.
  double value(int64_t row, int64_t k) const;
  /// Points `args` at the held rows from `first_row` on.
  void bind(MatmulArgs& args, int64_t first_row, int64_t num_rows) const;

  int64_t rows;
  int64_t cols;
  std::vector<float> plain;  // [rows][cols]
  ActType type = ActType::kF32;
  int64_t group = 0;
  int64_t stride = 0;  // bytes
  std::vector<unsigned char> held;
};

inline void RandomWeight::read(int64_t begin, int64_t count, WeightRows& rows) const {
  const auto index = [&](int64_t r, int64_t i) {
    return (static_cast<uint64_t>(begin + r) << 32) + static_cast<uint64_t>(i);
  };
  const auto resize = [&](auto& values, int64_t cols) {
    values.resize(static_cast<size_t>(count * cols));
  };
  if (spec_.layout == Layout::kDense) {
    resize(rows.values, spec_.in);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < spec_.in; ++k) {
        rows.values[static_cast<size_t>(r * spec_.in + k)] = random_float(seed_, index(r, k));
      }
    }
    return;
  }
  const uint64_t mask = spec_.layout == Layout::kInt4Group ? 15 : 255;
  const int64_t groups = spec_.num_groups();
  const int64_t scales = spec_.super_group == 0 ? groups : spec_.num_super_groups();
  resize(rows.codes, spec_.in);
  resize(rows.scales, scales);
  resize(rows.mins, scales);
  resize(rows.zeros, groups);
  resize(rows.sub_scales, groups);
  resize(rows.sub_mins, groups);
  const auto random = [&](uint64_t salt, int64_t r, int64_t i) {
    return mix((seed_ + salt) ^ mix(index(r, i)));
  };
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t k = 0; k < spec_.in; ++k) {
      rows.codes[static_cast<size_t>(r * spec_.in + k)] =
          static_cast<uint8_t>(random(0, r, k) & mask);
    }
    // Scales of two levels are as large as those of one: a byte around 64 times a sixty-fourth.
    const float unit = spec_.super_group == 0 ? 1.0f : 1.0f / 64;
    for (int64_t g = 0; g < scales; ++g) {
      const auto at = static_cast<size_t>(r * scales + g);
      rows.scales[at] = f32_to_f16((2 + random_float(seed_ + 1, index(r, g))) / 256 * unit);
      rows.mins[at] = f32_to_f16(random_float(seed_ + 2, index(r, g)) / 16 * unit);
    }
    for (int64_t g = 0; g < groups; ++g) {
      const auto at = static_cast<size_t>(r * groups + g);
      rows.zeros[at] = static_cast<uint8_t>(random(3, r, g) & mask);
      rows.sub_scales[at] = static_cast<int8_t>(random(4, r, g) & 255);
      rows.sub_mins[at] = static_cast<int8_t>(random(5, r, g) & 63);
    }
  }
}

inline std::shared_ptr<const PackedWeight> random_weight(const WeightSpec& spec, uint64_t seed) {
  return pack_weight(RandomWeight(spec, seed), nullptr,
                     [](int64_t count, const std::function<void(int64_t)>& fn) {
                       for (int64_t i = 0; i < count; ++i) fn(i);
                     });
}

inline WeightSpec dense_spec(DType dtype, int64_t in, int64_t out) {
  WeightSpec spec;
  spec.name = "dense " + std::string(dtype_name(dtype));
  spec.dtype = dtype;
  spec.in = in;
  spec.out = out;
  return spec;
}

inline WeightSpec int8_spec(int64_t in, int64_t out, int64_t group, Offset offset = Offset::kNone) {
  WeightSpec spec = dense_spec(DType::kF32, in, out);
  spec.name = "int8";
  spec.layout = Layout::kInt8Group;
  spec.group = group;
  spec.offset = offset;
  return spec;
}

inline WeightSpec int4_spec(int64_t in, int64_t out, int64_t group, Offset offset,
                            int32_t zero = 0) {
  WeightSpec spec = int8_spec(in, out, group, offset);
  spec.name = "int4";
  spec.layout = Layout::kInt4Group;
  spec.zero = zero;
  return spec;
}

/// `spec` with scales of two levels.
inline WeightSpec two_levels(WeightSpec spec, int64_t super_group) {
  spec.name += " in " + std::to_string(super_group);
  spec.super_group = super_group;
  return spec;
}

inline Activations::Activations(int64_t num_rows, int64_t num_cols, uint64_t seed)
    : rows(num_rows), cols(num_cols), plain(static_cast<size_t>(num_rows * num_cols)) {
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = random_float(seed, i);
}

inline void Activations::hold(const KernelTable& table, ActType act, int64_t group_inputs) {
  type = act;
  group = group_inputs;
  if (act == ActType::kF32) {
    stride = cols * 4;
    held.resize(plain.size() * 4);
    std::memcpy(held.data(), plain.data(), held.size());
    return;
  }
  const TensorForm form =
      act == ActType::kBF16 ? TensorForm::kPreparedBF16 : TensorForm::kPreparedI8;
  stride = row_bytes_of(form, cols, group);
  held.assign(static_cast<size_t>(rows * stride), 0xff);
  PrepareArgs args = {};
  args.in = plain.data();
  args.in_stride = cols;
  args.out = held.data();
  args.out_stride = stride;
  args.cols = cols;
  args.rows = rows;
  if (act == ActType::kI8) {
    args.group = group;
    args.scales = prepared_scales_offset(cols);
    args.sums = prepared_sums_offset(cols, group);
  }
  (act == ActType::kBF16 ? table.prepare_bf16 : table.prepare_i8)(args);
}

inline double Activations::value(int64_t row, int64_t k) const {
  const unsigned char* at = held.data() + row * stride;
  if (type == ActType::kF32) {
    float value = 0;
    std::memcpy(&value, at + 4 * k, 4);
    return value;
  }
  if (type == ActType::kBF16) {
    uint16_t bits = 0;
    std::memcpy(&bits, at + 2 * k, 2);
    return bf16_to_f32(bits);
  }
  float scale = 0;
  std::memcpy(&scale, at + prepared_scales_offset(cols) + k / group * 4, 4);
  return static_cast<double>(scale) * static_cast<int8_t>(at[k]);
}

inline void Activations::bind(MatmulArgs& args, int64_t first_row, int64_t num_rows) const {
  QUIRE_CHECK(first_row + num_rows <= rows);
  args.a = held.data() + first_row * stride;
  args.a_stride = stride;
  args.rows = num_rows;
  if (type == ActType::kI8) {
    args.a_scales = prepared_scales_offset(cols);
    args.a_sums = prepared_sums_offset(cols, group);
  }
}

/// Arguments for all panels and slices, without activations, output and bias.
inline MatmulArgs whole_matmul(const PackedWeight& weight) {
  MatmulArgs args = {};
  args.w = weight_args(weight);
  args.panel_end = num_panels(weight.spec.out);
  args.slice_end = args.w.num_slices;
  return args;
}

}  // namespace quire::backend::cpu
