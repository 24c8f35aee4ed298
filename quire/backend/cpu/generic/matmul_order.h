// The order in which every matmul kernel sums, fixed for all levels, row counts and workers; and
// the packed form of activations it is computed from.
//
// One accumulator an output and slice, from zero, K in order. `w` and `a` are exact conversions of
// what is stored; code = stored code - zero (int8 is stored + 128, its zero is 128; where groups
// have zeros of their own, code = stored code). scale and min are fp32: an fp16 number, or, of two
// levels, its exact product with a byte. f() is the conversion to fp32, rounding to nearest even;
// every fma and product is rounded once. Per slice, by activations:
//
// fp32, dense weight:
//   acc = fma(a, w, acc)
// fp32, int8 and int4 weight (min = 0 without, -(scale * zero) for zeros):
//   w = fma(scale, code, min), acc = fma(a, w, acc)
// bf16, dense bf16 weight (fp32 and fp16 ones meet fp32 alone):
//   for each pair of inputs (2i, 2i + 1): acc = dot2(pair, acc)
// bf16, int8 and int4 weight:
//   a group's dot d from 0: for each pair of (4i, 4i + 2), (4i + 1, 4i + 3): d = dot2(pair, d)
//   acc = fma(d, scale, acc)
//   mins and zeros: acc = fma(min, s, acc), s = the group's sum of a
// int8, int8 and int4 weight:
//   d = sum of stored code * a - zero * sum(a), exact in int32, the group's own zero or the
//   weight's acc = fma(f(d), scale * scale_a, acc) mins: acc = fma(min, scale_a * f(sum(a)), acc)
//
//   dot2(pair (x, y), d) = fma(a_x, w_x, fma(a_y, w_y, d)): what vdpbf16ps computes, but for its
//   treating denormals as 0.
//   s of bf16 rows: eight sums, s_j of the inputs 8c + j in order of c; then
//   ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)).
//
// Then the slices as a binary tree, ((0+1)+(2+3))+((4+5)+(6+7)), and the bias last. Groups of up to
// 65536 inputs keep the int32 dots exact.
#pragma once

#include <cstdint>

namespace quire::backend::cpu {

/// A constant as an argument, for functions that need it at compile time.
template <int kValue>
struct Const {
  static constexpr int value = kValue;
};

/// Which activations lie packed in a scratch.
struct PackedActivations {
  uint64_t key = 0;  // MatmulArgs::activations_key; 0: nobody's
  const void* a = nullptr;
  const void* kind = nullptr;
  int64_t rows = 0;
  int64_t first_group = 0;
  int64_t groups = 0;
  int64_t group_inputs = 0;
  int64_t scales = 0;  // MatmulArgs::a_scales
  // Of the weight they meet; what goes into a group's head follows from these.
  int32_t zero = 0;
  bool has_min = false;
  bool has_zeros = false;
  friend bool operator==(const PackedActivations&, const PackedActivations&) = default;
};

/// Scratch a matmul call uses, one a thread: packed activation rows, the slices' partial sums and a
/// slice's scales.
struct MatmulScratch {
  static constexpr int64_t kBlockRows = 96;    // activation rows packed at a time, at most
  static constexpr int64_t kTileColumns = 64;  // outputs of a tile, at most
  static constexpr int64_t kLevels = 3;        // of the tree of 8 slices, below its root
  static constexpr int64_t kPartialFloats = kLevels * kBlockRows * kTileColumns;
  static constexpr int64_t kScaleFloats = int64_t{1} << 17;  // of a slice of a tile's panels
  static constexpr int64_t kPackedDwords =
      ((int64_t{4} << 20) - static_cast<int64_t>(sizeof(PackedActivations)) -
       (kPartialFloats + kScaleFloats) * 4) /
      4;

  float partial[kPartialFloats];
  float scales[kScaleFloats];
  uint32_t packed[kPackedDwords];
  PackedActivations what;  // is packed; zeroed memory says nothing
};

/// This thread's scratch, made on first use (4 MiB of address space, touched as far as rows need).
/// Compiled for the baseline, unlike the kernels that call it.
MatmulScratch& matmul_scratch();

/// Inputs a matmul can have: one packed row must fit the scratch.
inline constexpr int64_t kMaxMatmulInputs = int64_t{1} << 18;
/// Groups a slice can have: the scales and mins of one panel must fit.
inline constexpr int64_t kMaxSliceGroups = MatmulScratch::kScaleFloats / 32;

}  // namespace quire::backend::cpu
