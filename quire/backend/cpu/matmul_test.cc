#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "quire/backend/cpu/levels.h"
#include "quire/backend/cpu/matmul_cases.h"
#include "quire/backend/cpu/packer.h"
#include "quire/base/thread_pool.h"

namespace quire::backend::cpu {
namespace {

/// Output of one call, a guard value around every row.
struct Output {
  static constexpr float kGuard = -12345.0f;
  Output(int64_t num_rows, int64_t num_cols)
      : cols(num_cols), values(static_cast<size_t>(num_rows * (num_cols + 3) + 1), kGuard) {}
  int64_t stride() const { return cols + 3; }
  // One float off alignment.
  float* data() { return values.data() + 1; }
  const float* row(int64_t r) const { return values.data() + 1 + r * stride(); }

  int64_t cols;
  std::vector<float> values;
};

struct KindCase {
  MatmulKind kind;
  ActType act;
  WeightSpec spec;
};

void add_kinds(std::vector<KindCase>& cases, const WeightSpec& spec) {
  for (const ActType act : {ActType::kF32, ActType::kBF16, ActType::kI8}) {
    if (const auto kind = matmul_kind(spec, act)) cases.push_back({*kind, act, spec});
  }
}

/// Every kind with one slice to eight, odd sizes, all offsets, several groups.
std::vector<KindCase> all_cases() {
  std::vector<KindCase> cases;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t in : {1, 2, 7, 12, 48, 72, 99}) {
      add_kinds(cases, dense_spec(dtype, in, in % 2 == 0 ? 80 : 37));
    }
  }
  add_kinds(cases, int8_spec(8, 1, 8));
  add_kinds(cases, int8_spec(96, 70, 32));
  add_kinds(cases, int8_spec(576, 53, 576));  // per channel
  add_kinds(cases, int8_spec(512, 70, 256));
  add_kinds(cases, int4_spec(576, 37, 576, Offset::kConstant, 8));
  add_kinds(cases, int4_spec(576, 21, 64, Offset::kZeros));
  add_kinds(cases, int8_spec(128, 33, 128));
  add_kinds(cases, int8_spec(256, 81, 64, Offset::kMin));
  add_kinds(cases, int8_spec(256, 17, 32));
  add_kinds(cases, int4_spec(8, 3, 8, Offset::kConstant, 8));
  add_kinds(cases, int4_spec(192, 70, 32, Offset::kMin));
  add_kinds(cases, int4_spec(128, 65, 128, Offset::kConstant, 7));
  add_kinds(cases, int4_spec(256, 96, 32, Offset::kConstant, 8));
  add_kinds(cases, int4_spec(256, 20, 64, Offset::kMin));
  add_kinds(cases, int4_spec(576, 40, 32, Offset::kMin));
  add_kinds(cases, int4_spec(72, 130, 24, Offset::kConstant, 8));
  // Zeros of each group: GPTQ and AWQ.
  add_kinds(cases, int4_spec(256, 70, 64, Offset::kZeros));
  add_kinds(cases, int4_spec(128, 33, 128, Offset::kZeros));
  add_kinds(cases, int8_spec(128, 20, 32, Offset::kZeros));
  // Two levels of scales; slices begin inside super-groups. As Q4_K, Q2_K, Q3_K, Q5_K and Q6_K.
  add_kinds(cases, two_levels(int4_spec(768, 70, 32, Offset::kMin), 256));
  add_kinds(cases, two_levels(int4_spec(256, 20, 16, Offset::kMin), 256));
  add_kinds(cases, two_levels(int4_spec(512, 17, 16, Offset::kConstant, 4), 256));
  add_kinds(cases, two_levels(int8_spec(256, 33, 32, Offset::kMin), 256));
  add_kinds(cases, two_levels(int8_spec(768, 65, 16), 256));
  return cases;
}

std::string describe(const KindCase& c, const char* level) {
  return std::string(level) + " kind " + std::to_string(c.kind) + " " + c.spec.name + " in " +
         std::to_string(c.spec.in) + " out " + std::to_string(c.spec.out) + " group " +
         std::to_string(c.spec.group);
}

bool same_bits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

Output run(const KernelTable& table, const KindCase& c, MatmulArgs args, const Activations& a,
           int64_t first_row, int64_t rows) {
  Output out(rows, c.spec.out);
  a.bind(args, first_row, rows);
  args.out = out.data();
  args.out_stride = out.stride();
  table.matmul[c.kind](args);
  return out;
}

std::vector<float> bias_of(int64_t n) {
  std::vector<float> bias(static_cast<size_t>(n));
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = random_float(77, i);
  return bias;
}

/// What double arithmetic makes of the same weights and activations, and the sum of |a||w|.
struct Reference {
  std::vector<double> sums;  // [rows][out]
  std::vector<double> magnitudes;
};

Reference reference(const PackedWeight& weight, const Activations& a) {
  const int64_t out = weight.spec.out;
  Reference ref;
  ref.sums.assign(static_cast<size_t>(a.rows * out), 0);
  ref.magnitudes = ref.sums;
  std::vector<float> row(static_cast<size_t>(weight.spec.in));
  for (int64_t o = 0; o < out; ++o) {
    unpack_row(weight, o, row.data());
    for (int64_t r = 0; r < a.rows; ++r) {
      const auto at = static_cast<size_t>(r * out + o);
      for (int64_t k = 0; k < weight.spec.in; ++k) {
        const double product = a.value(r, k) * static_cast<double>(row[static_cast<size_t>(k)]);
        ref.sums[at] += product;
        ref.magnitudes[at] += std::abs(product);
      }
    }
  }
  return ref;
}

TEST(Matmul, EveryKindAndLevelMatchesDoubles) {
  for (const KindCase& c : all_cases()) {
    const auto weight = random_weight(c.spec, 1);
    const std::vector<float> bias = bias_of(c.spec.out);
    for (const Level level : available_levels()) {
      const KernelTable table = kernel_table(level);
      Activations a(5, c.spec.in, 2);
      a.hold(table, c.act, c.spec.group);
      MatmulArgs args = whole_matmul(*weight);
      args.bias = bias.data();
      const Output out = run(table, c, args, a, 0, a.rows);
      const Reference ref = reference(*weight, a);
      for (int64_t r = 0; r < a.rows; ++r) {
        for (int64_t o = 0; o < c.spec.out; ++o) {
          const auto at = static_cast<size_t>(r * c.spec.out + o);
          const double bias_value = static_cast<double>(bias[static_cast<size_t>(o)]);
          const double tolerance = 4 * static_cast<double>(std::numeric_limits<float>::epsilon()) *
                                   (ref.magnitudes[at] + std::abs(bias_value));
          ASSERT_NEAR(static_cast<double>(out.row(r)[o]), ref.sums[at] + bias_value, tolerance)
              << describe(c, table.level) << " row " << r << " output " << o;
        }
        for (int64_t i = c.spec.out; i < out.stride(); ++i) {
          const bool inside = r * out.stride() + i + 1 < static_cast<int64_t>(out.values.size());
          if (!inside) break;
          ASSERT_EQ(out.row(r)[i], Output::kGuard) << describe(c, table.level);
        }
      }
      ASSERT_EQ(out.values[0], Output::kGuard);
    }
  }
}

/// bf16 activations: processors may differ in how vdpbf16ps rounds inside a pair.
void expect_close(const Output& out, const Output& expected, const Reference& ref,
                  const std::string& what) {
  for (size_t i = 0; i < ref.sums.size(); ++i) {
    const auto r = static_cast<int64_t>(i) / out.cols;
    const auto o = static_cast<int64_t>(i) % out.cols;
    EXPECT_NEAR(out.row(r)[o], expected.row(r)[o], 2e-7 * ref.magnitudes[i]) << what;
  }
}

TEST(Matmul, LevelsAgreeToTheBit) {
  const std::vector<Level> levels = available_levels();
  const KernelTable scalar = kernel_table(Level::kScalar);
  for (const KindCase& c : all_cases()) {
    const auto weight = random_weight(c.spec, 3);
    Activations a(3, c.spec.in, 4);
    a.hold(scalar, c.act, c.spec.group);
    const Output expected = run(scalar, c, whole_matmul(*weight), a, 0, a.rows);
    for (const Level level : levels) {
      const KernelTable table = kernel_table(level);
      const Output out = run(table, c, whole_matmul(*weight), a, 0, a.rows);
      if (c.act == ActType::kBF16) {
        expect_close(out, expected, reference(*weight, a), describe(c, table.level));
      } else {
        EXPECT_EQ(out.values, expected.values) << describe(c, table.level);
      }
    }
  }
}

/// The same with the panels shared by two threads.
Output run_shared(ThreadPool& pool, const KernelTable& table, const KindCase& c, MatmulArgs args,
                  const Activations& a, int64_t first_row, int64_t rows) {
  Output out(rows, c.spec.out);
  a.bind(args, first_row, rows);
  args.out = out.data();
  args.out_stride = out.stride();
  const int64_t panels = num_panels(c.spec.out);
  pool.run([&](int worker, int num_workers) {
    MatmulArgs part = args;
    part.panel_begin = panels * worker / num_workers;
    part.panel_end = panels * (worker + 1) / num_workers;
    table.matmul[c.kind](part);
  });
  return out;
}

TEST(Matmul, RowsDoNotDependOnTheirNumberNorOnThreads) {
  ThreadPool pool({.num_threads = 2, .cpus = {}});
  for (const Level level : available_levels()) {
    const KernelTable table = kernel_table(level);
    const bool slow = level == Level::kScalar;
    std::vector<int64_t> counts;
    for (int64_t rows = 1; rows <= 70; rows += slow ? 11 : 1) counts.push_back(rows);
    counts.push_back(128);
    if (!slow) counts.push_back(512);
    for (const KindCase& c : all_cases()) {
      if (slow && c.spec.in * c.spec.out > 8000) continue;
      const auto weight = random_weight(c.spec, 5);
      Activations a(counts.back(), c.spec.in, 6);
      a.hold(table, c.act, c.spec.group);
      const MatmulArgs args = whole_matmul(*weight);
      std::vector<Output> alone;
      for (int64_t r = 0; r < a.rows; ++r) alone.push_back(run(table, c, args, a, r, 1));
      for (const int64_t rows : counts) {
        const int64_t first = std::min<int64_t>(3, a.rows - rows);
        const Output together = run(table, c, args, a, first, rows);
        if (rows == 1 || rows % 16 == 8 || rows == a.rows) {  // waking a worker takes its time
          const Output shared = run_shared(pool, table, c, args, a, first, rows);
          EXPECT_EQ(together.values, shared.values) << describe(c, table.level) << " rows " << rows;
        }
        for (int64_t r = 0; r < rows; ++r) {
          const auto& single = alone[static_cast<size_t>(first + r)];
          ASSERT_TRUE(same_bits(together.row(r), single.row(0), c.spec.out))
              << describe(c, table.level) << " rows " << rows << " row " << r;
        }
      }
    }
  }
}

/// Weights so long that one or two rows read them as few streams, in odd numbers of panels.
TEST(Matmul, LongStreamsGiveTheSameRows) {
  std::vector<KindCase> cases;
  add_kinds(cases, dense_spec(DType::kBF16, 2048, 75));
  add_kinds(cases, int8_spec(2048, 112, 2048 / 8));
  add_kinds(cases, int8_spec(2048, 101, 32, Offset::kMin));
  add_kinds(cases, int8_spec(2048, 128, 64, Offset::kZeros));
  add_kinds(cases, two_levels(int8_spec(2048, 111, 16), 256));
  add_kinds(cases, int4_spec(8192, 267, 32, Offset::kConstant, 8));
  add_kinds(cases, int4_spec(8192, 304, 128, Offset::kConstant, 8));
  add_kinds(cases, int4_spec(8192, 289, 128, Offset::kZeros));
  add_kinds(cases, two_levels(int4_spec(8192, 271, 32, Offset::kMin), 256));
  constexpr int64_t kRows = 7;
  for (const KindCase& c : cases) {
    const auto weight = random_weight(c.spec, 1);
    const std::vector<float> bias = bias_of(c.spec.out);
    MatmulArgs args = whole_matmul(*weight);
    args.bias = bias.data();
    for (const Level level : available_levels()) {
      const KernelTable table = kernel_table(level);
      Activations a(kRows, c.spec.in, 2);
      a.hold(table, c.act, c.spec.group);
      const Output all = run(table, c, args, a, 0, kRows);
      for (const int64_t rows : {1, 2}) {
        const Output few = run(table, c, args, a, 3, rows);
        for (int64_t r = 0; r < rows; ++r) {
          EXPECT_TRUE(same_bits(few.row(r), all.row(3 + r), c.spec.out))
              << describe(c, level_name(level)) << " row " << r << " of " << rows;
          EXPECT_EQ(few.row(r)[c.spec.out], Output::kGuard) << describe(c, level_name(level));
        }
      }
    }
  }
}

TEST(Matmul, PanelsDoNotDependOnTheirRange) {
  for (const Level level : available_levels()) {
    const KernelTable table = kernel_table(level);
    for (const KindCase& c : all_cases()) {
      const auto weight = random_weight(c.spec, 7);
      Activations a(8, c.spec.in, 8);
      a.hold(table, c.act, c.spec.group);
      for (const int64_t rows : {1, 8}) {
        const Output whole = run(table, c, whole_matmul(*weight), a, 0, rows);
        const int64_t panels = num_panels(c.spec.out);
        for (int64_t begin = 0; begin < panels; ++begin) {
          for (int64_t end = begin + 1; end <= panels; ++end) {
            MatmulArgs args = whole_matmul(*weight);
            args.panel_begin = begin;
            args.panel_end = end;
            const Output part = run(table, c, args, a, 0, rows);
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t o = 0; o < c.spec.out; ++o) {
                const bool inside = o / kPanel >= begin && o / kPanel < end;
                ASSERT_EQ(part.row(r)[o], inside ? whole.row(r)[o] : Output::kGuard)
                    << describe(c, table.level) << " panels " << begin << " to " << end;
              }
            }
          }
        }
      }
    }
  }
}

/// Adds `parts` (2, 4 or 8 outputs) as a binary tree.
std::vector<float> tree_sum(const std::vector<Output>& parts, size_t begin, size_t end) {
  if (end - begin == 1) return parts[begin].values;
  const size_t middle = (begin + end) / 2;
  std::vector<float> sum = tree_sum(parts, begin, middle);
  const std::vector<float> right = tree_sum(parts, middle, end);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

TEST(Matmul, SlicesAddAlongTheTree) {
  int64_t most = 0;
  for (const Level level : available_levels()) {
    const KernelTable table = kernel_table(level);
    for (const KindCase& c : all_cases()) {
      const auto weight = random_weight(c.spec, 9);
      Activations a(7, c.spec.in, 10);
      a.hold(table, c.act, c.spec.group);
      const MatmulArgs whole_args = whole_matmul(*weight);
      const Output whole = run(table, c, whole_args, a, 0, a.rows);
      const int64_t slices = whole_args.w.num_slices;
      most = std::max(most, slices);
      for (int64_t parts = 2; parts <= slices; parts *= 2) {
        std::vector<Output> partial;
        for (int64_t i = 0; i < parts; ++i) {
          MatmulArgs args = whole_args;
          args.slice_begin = slices / parts * i;
          args.slice_end = slices / parts * (i + 1);
          partial.push_back(run(table, c, args, a, 0, a.rows));
        }
        const std::vector<float> sum = tree_sum(partial, 0, partial.size());
        for (int64_t r = 0; r < a.rows; ++r) {
          ASSERT_TRUE(same_bits(sum.data() + 1 + r * whole.stride(), whole.row(r), c.spec.out))
              << describe(c, table.level) << " in " << parts << " parts, row " << r;
        }
      }
    }
  }
  EXPECT_EQ(most, 8);
}

/// The order of matmul_order.h, spelled out for fp32: K cut in 8, each eighth in order, then the
/// tree.
TEST(Matmul, OrderIsTheDocumentedOne) {
  const WeightSpec spec = int4_spec(256, 16, 32, Offset::kMin);
  const auto weight = random_weight(spec, 11);
  Activations a(1, spec.in, 12);
  a.hold(kernel_table(Level::kScalar), ActType::kF32, 0);
  for (const Level level : available_levels()) {
    const KernelTable table = kernel_table(level);
    const Output out = run(table, {kInt4_F32, ActType::kF32, spec}, whole_matmul(*weight), a, 0, 1);
    std::vector<float> w(static_cast<size_t>(spec.in));
    for (int64_t o = 0; o < spec.out; ++o) {
      unpack_row(*weight, o, w.data());
      float slices[8];
      for (size_t s = 0; s < 8; ++s) {
        slices[s] = 0;
        for (size_t k = s * 32; k < s * 32 + 32; ++k) {
          slices[s] = std::fma(a.plain[k], w[k], slices[s]);
        }
      }
      const float left = (slices[0] + slices[1]) + (slices[2] + slices[3]);
      const float right = (slices[4] + slices[5]) + (slices[6] + slices[7]);
      EXPECT_EQ(out.row(0)[o], left + right) << table.level << " output " << o;
    }
  }
}

/// The same for int8 activations.
TEST(Matmul, Int8OrderIsTheDocumentedOne) {
  const WeightSpec spec = int4_spec(96, 16, 32, Offset::kMin);
  const auto weight = random_weight(spec, 13);
  Activations a(1, spec.in, 14);
  a.hold(kernel_table(Level::kScalar), ActType::kI8, 32);
  for (const Level level : available_levels()) {
    const KernelTable table = kernel_table(level);
    const Output out = run(table, {kInt4_I8, ActType::kI8, spec}, whole_matmul(*weight), a, 0, 1);
    std::vector<float> w(static_cast<size_t>(spec.in));
    for (int64_t o = 0; o < spec.out; ++o) {
      unpack_row(*weight, o, w.data());
      float acc = 0;
      for (int64_t g = 0; g < 3; ++g) {
        const GroupPlace place = group_place(spec, panel_shape(spec), g);
        const auto* entry = reinterpret_cast<const uint16_t*>(weight->data.data() + place.entry);
        const float scale = f16_to_f32(entry[o]);
        const float min = f16_to_f32(entry[16 + o]);
        int32_t dot = 0;
        int32_t sum = 0;
        for (int64_t k = g * 32; k < g * 32 + 32; ++k) {
          const float code = (w[static_cast<size_t>(k)] - min) / scale;
          const auto value = static_cast<int8_t>(a.held[static_cast<size_t>(k)]);
          dot += static_cast<int32_t>(std::lround(code)) * value;
          sum += value;
        }
        float a_scale = 0;
        std::memcpy(&a_scale, a.held.data() + 128 + g * 4, 4);
        acc = std::fma(static_cast<float>(dot), scale * a_scale, acc);
        acc = std::fma(min, a_scale * static_cast<float>(sum), acc);
      }
      EXPECT_EQ(out.row(0)[o], acc) << table.level << " output " << o;
    }
  }
}

TEST(Matmul, WideRowsFitTheScratch) {
  // 40 rows of 60,000 fp32 inputs are more than the scratch holds at once.
  const WeightSpec spec = dense_spec(DType::kF32, 60000, 5);
  const auto weight = random_weight(spec, 15);
  const KindCase c = {kDenseF32_F32, ActType::kF32, spec};
  const KernelTable table = kernel_table(detect_level());
  Activations a(40, spec.in, 16);
  a.hold(table, c.act, 0);
  const Output together = run(table, c, whole_matmul(*weight), a, 0, a.rows);
  for (int64_t r = 0; r < a.rows; ++r) {
    const Output alone = run(table, c, whole_matmul(*weight), a, r, 1);
    ASSERT_TRUE(same_bits(together.row(r), alone.row(0), spec.out)) << "row " << r;
  }
}

}  // namespace
}  // namespace quire::backend::cpu
