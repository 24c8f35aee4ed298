// PackedWeight: one weight matrix in a compute layout, and the sources it is packed from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quire/base/huge_buffer.h"
#include "quire/tensor/dtype.h"

namespace quire::backend {

/// The few layouts kernels compute from. File formats are many (weights/), layouts few.
enum class Layout : uint8_t {
  kDense,      // `dtype` fp32, bf16 or fp16
  kInt8Group,  // 8-bit codes, one scale per `group` inputs
  kInt4Group,  // unsigned 4-bit codes, one scale (and offset) per `group` inputs
};

/// What a group's code 0 stands for: w = scale * (code - zero), or w = scale * code + min.
enum class Offset : uint8_t {
  kNone,      // zero = 0 (int8: codes are signed)
  kConstant,  // the same integer zero everywhere, e.g. 8 for Q4_0
  kMin,       // a minimum per group, e.g. Q4_1, Q4_K
  kZeros,     // an unsigned integer zero per group, as GPTQ and AWQ have; int8 codes are unsigned
};

/// How activations are held while they meet a weight.
enum class ActType : uint8_t { kF32, kBF16, kI8 };

/// The shape of a packed weight, known before any byte is read: W is [out, in], y = W x.
struct WeightSpec {
  std::string name;
  Layout layout = Layout::kDense;
  DType dtype = DType::kF32;  // dense element type; ignored by coded layouts
  int64_t in = 0;
  int64_t out = 0;
  int64_t group = 0;  // inputs a scale covers; 0 for dense
  Offset offset = Offset::kNone;
  int32_t zero = 0;  // for kConstant
  /// 0: scales (and mins) are fp16. Else they have two levels: a group's scale is a signed byte
  /// times the fp16 scale of the `super_group` inputs (whole groups) it lies in, and its min, for
  /// kMin, likewise; both products are exact in fp32. Not with kZeros.
  int64_t super_group = 0;

  int64_t num_groups() const { return group == 0 ? 0 : in / group; }
  int64_t num_super_groups() const { return super_group == 0 ? 0 : in / super_group; }
};

/// Outputs a panel holds: the lanes of one 512-bit register of fp32.
inline constexpr int64_t kPanel = 16;
/// Row-split sums: K is cut into this many equal slices, or the largest half of it that cuts whole
/// groups.
inline constexpr int64_t kMaxSlices = 8;

constexpr int64_t num_panels(int64_t out) {
  return (out + kPanel - 1) / kPanel;
}

/// 8, 4, 2 or 1: the largest that cuts `in` into slices of whole units (`group`, or 2 elements for
/// dense).
constexpr int64_t num_slices(const WeightSpec& spec) {
  const int64_t unit = spec.layout == Layout::kDense ? 2 : spec.group;
  for (int64_t slices = kMaxSlices; slices > 1; slices /= 2) {
    if (spec.in % (slices * unit) == 0) return slices;
  }
  return 1;
}

/// Where a packed weight's bytes lie. The layout ("16-panel"): panel by panel, so that one output's
/// weights are one stream; slice by slice; of coded layouts block by block, a block being a few
/// groups' scales that fill whole lines of 64 bytes, and then the groups' codes. Lanes are the
/// panel's 16 outputs (those past `out` are zero), K in order.
///
/// Codes:
///   dense fp32: [in][16]                 one line an input
///   dense bf16: [ceil(in/2)][16][2]      one line a pair of inputs
///   dense fp16: [ceil(in/2)][2][16]      one line a pair of inputs, one after the other
///   int8-group: [in/4][16][4]            signed codes as code + 128
///   int4-group: [in/8][16][4 bytes]      one line 8 inputs: byte b of a lane has input b in
///                                        its low and input 4 + b in its high nibble
/// An odd last input is paired with 0. `group` is a multiple of 8, and `in` of `group`.
///
/// Scales, a group's entry of 16 lanes:
///   fp16 scales: fp16 scale[16]; kMin: fp16 min[16]; kZeros: uint8 zero[16]
///   two levels:  int8 scale[16]; kMin: int8 min[16]; and before the first block of each
///   super-group
///                a line of its fp16 scale[16]; kMin: fp16 min[16]
/// Slices and super-groups begin with a block; a super-group that a slice's end cuts has its line
/// in both slices.
struct PanelShape {
  int64_t slices;
  int64_t groups;        // of a slice; 0 for dense
  int64_t code_bytes;    // of a slice
  int64_t slice_bytes;   // codes and scales
  int64_t block_groups;  // whose scales lie together
  int64_t block_bytes;   // of those scales
  int64_t super_bytes;   // of a super-group's scale (and min); 0 without a second level

  int64_t panel_bytes() const { return slices * slice_bytes; }
};
PanelShape panel_shape(const WeightSpec& spec);

/// Bytes of the scales (and mins and zeros) of all outputs there are, nothing repeated or padded.
int64_t scale_bytes(const WeightSpec& spec);

/// Bytes of the packed codes and of the packed scales (padding included), all panels together.
int64_t packed_code_bytes(const WeightSpec& spec);
int64_t packed_scale_bytes(const WeightSpec& spec);

/// Where, from a panel's begin, group `group` (counted over all slices) lies.
struct GroupPlace {
  int64_t codes;
  int64_t entry;
  int64_t super;  // its super-group's line
};
GroupPlace group_place(const WeightSpec& spec, const PanelShape& shape, int64_t group);

/// A weight ready to compute with. In a dry run the buffer is empty.
struct PackedWeight {
  WeightSpec spec;
  HugeBuffer data;

  int64_t bytes() const { return packed_code_bytes(spec) + packed_scale_bytes(spec); }
};

/// Unpacked rows on their way into a PackedWeight; which vectors are filled follows from the spec.
struct WeightRows {
  std::vector<float> values;       // dense: [rows][in]
  std::vector<uint8_t> codes;      // coded: [rows][in]; int8 as code + 128, but for kZeros
  std::vector<uint8_t> zeros;      // kZeros: [rows][in/group]
  std::vector<uint16_t> scales;    // coded: [rows][in/group], or [rows][in/super_group]; fp16
  std::vector<uint16_t> mins;      // kMin: as scales
  std::vector<int8_t> sub_scales;  // two levels: [rows][in/group]
  std::vector<int8_t> sub_mins;    // two levels and kMin: [rows][in/group]
};

/// Where a weight's rows come from: one per file format (weights/). Called from several threads at
/// once.
class WeightReader {
 public:
  virtual ~WeightReader() = default;
  virtual const WeightSpec& spec() const = 0;
  /// Fills `rows` with rows [begin, begin + count) of W.
  virtual void read(int64_t begin, int64_t count, WeightRows& rows) const = 0;
  /// Called once when all rows were read: mapped pages may go.
  virtual void done() const {}
};

/// Writes row `index` of the weight as fp32 to out[in]: exactly what the codes, scales and offsets
/// stand for, fma(scale, code - zero, min) rounded once. The embedding lookup, and the reference
/// for tests.
void unpack_row(const PackedWeight& weight, int64_t index, float* out);

/// The same for row `row` of `rows`, before packing: a definition to test packers and readers by.
void decode_row(const WeightSpec& spec, const WeightRows& rows, int64_t row, float* out);

}  // namespace quire::backend
