// The order in which every matmul kernel sums, fixed for all levels, row counts and workers; and
// the packed form of activations it is computed from.
//
// One accumulator an output and slice, from zero, K in order. `w` and `a` are exact conversions of
// what is stored; code = stored code - zero (int8 is stored + 128, its zero is 128); f() is the
// conversion to fp32, rounding to nearest even; every fma and product is rounded once. Per slice:
//
//   activations | dense weight                | int8 and int4 weight
//   fp32        | acc = fma(a, w, acc)        | w = fma(scale, code, min or 0), acc = fma(a, w,
//   acc) bf16        | (fp32 weight: not a kind)   | group dot d from 0: for each pair d =
//   dot2(pair, d)
//               | for each pair of inputs     | acc = fma(d, scale, acc)
//               | (2i, 2i+1):                 | kMin: acc = fma(min, s, acc), s = the group's sum
//               of a | acc = dot2(pair, acc)       | pairs: (4i, 4i+2), (4i+1, 4i+3)
//   int8        | (not a kind)                | d = sum of stored * a - zero * sum(a), exact int32
//               |                             | acc = fma(f(d), scale_w * scale_a, acc)
//               |                             | kMin: acc = fma(min, scale_a * f(sum(a)), acc)
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

/// Scratch a matmul call uses, one a thread: packed activation rows, the slices' partial sums and a
/// slice's scales.
struct MatmulScratch {
  static constexpr int64_t kBlockRows = 96;    // activation rows packed at a time, at most
  static constexpr int64_t kTileColumns = 64;  // outputs of a tile, at most
  static constexpr int64_t kLevels = 3;        // of the tree of 8 slices, below its root
  static constexpr int64_t kPartialFloats = kLevels * kBlockRows * kTileColumns;
  static constexpr int64_t kScaleFloats = int64_t{1} << 17;  // of a slice of a tile's panels
  static constexpr int64_t kPackedDwords =
      ((int64_t{2} << 20) - (kPartialFloats + kScaleFloats) * 4) / 4;

  float partial[kPartialFloats];
  float scales[kScaleFloats];
  uint32_t packed[kPackedDwords];
};

/// This thread's scratch, made on first use (2 MiB of address space, touched as far as rows need).
/// Compiled for the baseline, unlike the kernels that call it.
MatmulScratch& matmul_scratch();

/// Inputs a matmul can have: one packed row must fit the scratch.
inline constexpr int64_t kMaxMatmulInputs = int64_t{1} << 18;
/// Groups a slice can have: the scales and mins of one panel must fit.
inline constexpr int64_t kMaxSliceGroups = MatmulScratch::kScaleFloats / 32;

}  // namespace quire::backend::cpu
