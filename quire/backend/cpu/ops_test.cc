#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "quire/backend/cpu/levels.h"
#include "quire/tensor/dtype.h"

namespace quire::backend::cpu {
namespace {

std::vector<float> random_floats(size_t n, uint32_t seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(n);
  for (float& x : out) x = normal(generator);
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

RowArgs row_args(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& out,
                 int64_t cols, int64_t rows) {
  RowArgs args{};
  args.a = a.data();
  args.b = b.data();
  args.out = out.data();
  args.a_stride = args.b_stride = args.out_stride = cols;
  args.cols = cols;
  args.rows = rows;
  return args;
}

class RowOps : public testing::TestWithParam<int64_t> {};  // columns

TEST_P(RowOps, RmsNormEqualsTheFormulaAndAllLevelsAgree) {
  const int64_t cols = GetParam();
  const int64_t rows = 3;
  const auto x = random_floats(static_cast<size_t>(cols * rows), 1, 3.0f);
  const auto weight = random_floats(static_cast<size_t>(cols), 2, 1.0f);
  std::vector<float> first;
  for (const Level level : available_levels()) {
    std::vector<float> out(x.size());
    RowArgs args = row_args(x, x, out, cols, rows);
    args.vector = weight.data();
    args.epsilon = 1e-5f;
    kernel_table(level).rms_norm(args);
    for (int64_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (int64_t c = 0; c < cols; ++c) squares += std::pow(double{x[size_t(r * cols + c)]}, 2);
      const double inverse = 1 / std::sqrt(squares / double(cols) + 1e-5);
      for (int64_t c = 0; c < cols; ++c) {
        const auto i = static_cast<size_t>(r * cols + c);
        const double want = x[i] * inverse * weight[size_t(c)];
        EXPECT_NEAR(out[i], want, 1e-6 * std::abs(want) + 1e-30) << level_name(level);
      }
    }
    if (first.empty()) first = out;
    EXPECT_TRUE(same_bits(first, out)) << level_name(level);
  }
}

TEST_P(RowOps, GatedActEqualsTheFormulaAndAllLevelsAgree) {
  const int64_t cols = GetParam();
  auto gate = random_floats(static_cast<size_t>(cols), 3, 6.0f);
  const auto up = random_floats(static_cast<size_t>(cols), 4, 1.0f);
  const std::vector<float> extremes = {0.0f,   -0.0f,  86.9f, -86.9f,
                                       100.0f, -100.f, 1e30f, -std::ldexp(1.0f, -140)};
  std::copy_n(extremes.begin(), std::min<size_t>(extremes.size(), gate.size()), gate.begin());
  std::vector<float> first;
  for (const Level level : available_levels()) {
    std::vector<float> out(gate.size(), -1.0f);
    kernel_table(level).gated_act(row_args(gate, up, out, cols, 1));
    for (size_t i = 0; i < gate.size(); ++i) {
      const double want = gate[i] / (1 + std::exp(-double{gate[i]})) * up[i];
      EXPECT_NEAR(out[i], want, 4e-7 * std::abs(want) + 1e-33) << gate[i];
    }
    if (first.empty()) first = out;
    EXPECT_TRUE(same_bits(first, out)) << level_name(level);
  }
}

TEST_P(RowOps, AddIsExact) {
  const int64_t cols = GetParam();
  const auto a = random_floats(static_cast<size_t>(cols), 5, 1.0f);
  const auto b = random_floats(static_cast<size_t>(cols), 6, 1.0f);
  for (const Level level : available_levels()) {
    std::vector<float> out(a.size());
    kernel_table(level).add(row_args(a, b, out, cols, 1));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(out[i], a[i] + b[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, RowOps, testing::Values(1, 15, 16, 33, 576, 1000));

std::vector<float> llama_frequencies(int32_t head_dim, double base) {
  std::vector<float> out(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(1.0 / std::pow(base, 2.0 * double(i) / head_dim));
  }
  return out;
}

TEST(Rope, TableIsTheCosineOfTheRoundedAngle) {
  const int32_t d = 128;
  const auto frequencies = llama_frequencies(d, 10000.0);
  std::vector<int32_t> positions = {0, 1, 2, 511, 4095, 32767, 99999, 131071};
  std::mt19937 generator(7);
  for (int i = 0; i < 500; ++i) positions.push_back(static_cast<int32_t>(generator() % 131072));
  std::vector<float> first;
  for (const Level level : available_levels()) {
    std::vector<float> table(positions.size() * d);
    kernel_table(level).rope_table({positions.data(), frequencies.data(), table.data(), d,
                                    static_cast<int64_t>(positions.size()), d});
    double worst = 0;
    for (size_t r = 0; r < positions.size(); ++r) {
      for (size_t i = 0; i < d / 2; ++i) {
        const double angle = static_cast<float>(positions[r]) * frequencies[i];
        worst = std::max(worst, std::abs(table[r * d + i] - std::cos(angle)));
        worst = std::max(worst, std::abs(table[r * d + d / 2 + i] - std::sin(angle)));
      }
    }
    EXPECT_LT(worst, 1e-7) << level_name(level);
    if (first.empty()) first = table;
    EXPECT_TRUE(same_bits(first, table)) << level_name(level);
  }
}

TEST(Rope, PairsAreHalfADimensionApart) {
  for (const int32_t d : {16, 64, 80}) {
    const int32_t heads = 3;
    const int64_t rows = 2;
    const auto x = random_floats(static_cast<size_t>(rows * heads * d), 8, 1.0f);
    const auto frequencies = llama_frequencies(d, 100.0);
    const std::vector<int32_t> positions = {3, 70};
    std::vector<float> first;
    for (const Level level : available_levels()) {
      const KernelTable kernels = kernel_table(level);
      std::vector<float> table(static_cast<size_t>(rows * d));
      kernels.rope_table({positions.data(), frequencies.data(), table.data(), d, rows, d});
      std::vector<float> out = x;
      kernels.rope({out.data(), int64_t{heads} * d, rows, table.data(), d, heads, d});
      for (size_t i = 0; i < x.size(); ++i) {
        const auto row = i / size_t(heads * d);
        const auto in_head = static_cast<int32_t>(i % size_t(d));
        const bool low = in_head < d / 2;
        const double angle = double(positions[row]) * frequencies[size_t(in_head % (d / 2))];
        const double other = x[low ? i + size_t(d / 2) : i - size_t(d / 2)];
        const double want = x[i] * std::cos(angle) + (low ? -other : other) * std::sin(angle);
        EXPECT_NEAR(out[i], want, 2e-5) << d << " " << i;
      }
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(first, out)) << level_name(level);
    }
  }
}

/// Where element i of a token's K or V lies in a page: the layout that kernels.h documents.
size_t page_index(KvType type, bool is_v, int32_t d, int32_t token, int32_t i) {
  const int32_t u = type == KvType::kF32 ? 1 : 2;
  if (!is_v) return static_cast<size_t>((i / u * 16 + token) * u + i % u);
  return static_cast<size_t>(16 * d + (token / u * d + i) * u + token % u);
}

TEST(StoreKv, WritesTheDocumentedLayoutAndClearsAFreshPage) {
  const int32_t d = 24;
  const int32_t padded = 32;
  const int32_t kv_heads = 2;
  for (const KvType type : {KvType::kF32, KvType::kBF16, KvType::kF16}) {
    for (const Level level : available_levels()) {
      const int64_t element = type == KvType::kF32 ? 4 : 2;
      KvArgs kv{};
      kv.page_bytes = 2 * 16 * padded * element;
      kv.block_tokens = 32;
      kv.num_kv_heads = kv_heads;
      kv.head_dim = d;
      kv.padded_dim = padded;
      kv.type = type;
      kv.block_bytes = 2 * kv_heads * kv.page_bytes;
      std::vector<char> pool(static_cast<size_t>(3 * kv.block_bytes), char(0xff));  // NaN
      kv.layer_base = pool.data();
      const auto k = random_floats(static_cast<size_t>(4 * kv_heads * d), 9, 1.0f);
      const auto v = random_floats(static_cast<size_t>(4 * kv_heads * d), 10, 1.0f);
      // Block 2, second page, tokens 0, 1, 2; the fourth row is padding.
      const std::vector<int32_t> slots = {2 * 32 + 16, 2 * 32 + 17, 2 * 32 + 18, -1};
      kernel_table(level).store_kv(
          {kv, k.data(), v.data(), kv_heads * d, kv_heads * d, slots.data(), 4});
      const auto value = [&](const char* page, size_t index) {
        if (type == KvType::kF32) return reinterpret_cast<const float*>(page)[index];
        const uint16_t bits = reinterpret_cast<const uint16_t*>(page)[index];
        return type == KvType::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
      };
      const auto rounded = [&](float x) {
        if (type == KvType::kBF16) return bf16_to_f32(f32_to_bf16(x));
        return type == KvType::kF16 ? f16_to_f32(f32_to_f16(x)) : x;
      };
      for (int32_t head = 0; head < kv_heads; ++head) {
        const char* page = pool.data() + 2 * kv.block_bytes + (kv_heads + head) * kv.page_bytes;
        for (int32_t token = 0; token < 16; ++token) {
          for (int32_t i = 0; i < padded; ++i) {
            const bool stored = token < 3 && i < d;
            const auto source = static_cast<size_t>((token * kv_heads + head) * d + i);
            const float want_k = stored ? rounded(k[source]) : 0.0f;
            const float want_v = stored ? rounded(v[source]) : 0.0f;
            EXPECT_EQ(value(page, page_index(type, false, padded, token, i)), want_k);
            EXPECT_EQ(value(page, page_index(type, true, padded, token, i)), want_v);
          }
        }
      }
      const auto untouched = pool.begin() + 2 * kv.block_bytes + kv_heads * kv.page_bytes;
      EXPECT_EQ(std::count(pool.begin(), untouched, char(0xff)), untouched - pool.begin());
    }
  }
}

/// Conversion to fp16 as the stored K shows it: ties, subnormals, overflow, NaN.
TEST(StoreKv, RoundsToFp16AsTheProcessorDoes) {
  std::vector<float> values = {0.0f,   -0.0f,    1.0f,     65504.0f, 65519.9f, 65520.0f,
                               -1e9f,  6.1e-5f,  5.96e-8f, 2.98e-8f, 2.99e-8f, -8.9e-8f,
                               1e-12f, INFINITY, 2049.0f,  2051.0f};
  for (int i = 0; i < 2048; ++i)
    values.push_back(std::ldexp(1.0f + 0.00049f * float(i), i % 42 - 26));
  const auto d = static_cast<int32_t>(values.size() / 4 * 2);
  for (const Level level : available_levels()) {
    KvArgs kv{};
    kv.head_dim = kv.padded_dim = d;
    kv.type = KvType::kF16;
    kv.page_bytes = kv.block_bytes = int64_t{2} * 16 * d * 2;
    kv.block_tokens = 16;
    kv.num_kv_heads = 1;
    std::vector<uint16_t> page(static_cast<size_t>(2 * 16 * d));
    kv.layer_base = reinterpret_cast<char*>(page.data());
    const int32_t slot = 0;
    kernel_table(level).store_kv({kv, values.data(), values.data() + d, d, d, &slot, 1});
    for (int32_t i = 0; i < d; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(page[page_index(KvType::kF16, false, d, 0, i)], f32_to_f16(values[at]))
          << values[at];
      EXPECT_EQ(page[page_index(KvType::kF16, true, d, 0, i)], f32_to_f16(values[at + size_t(d)]));
    }
  }
}

}  // namespace
}  // namespace quire::backend::cpu
