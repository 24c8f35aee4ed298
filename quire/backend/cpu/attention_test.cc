#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "quire/backend/cpu/levels.h"
#include "quire/tensor/dtype.h"

namespace quire::backend::cpu {
namespace {

struct Shape {
  int32_t head_dim = 64;
  int32_t kv_heads = 2;
  int32_t group = 3;
  int32_t window = 0;
  KvType type = KvType::kF32;
  int32_t block_tokens = 16;
  float soft_cap = 0;

  int32_t padded_dim() const { return (head_dim + 15) / 16 * 16; }
};

/// One sequence: its queries, keys and values, and the pages they were stored into.
class Sequence {
 public:
  Sequence(const Shape& shape, const KernelTable& kernels, int32_t length, uint32_t block_seed)
      : shape_(shape), kernels_(kernels), length_(length) {
    std::mt19937 generator(99);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    const auto cells = static_cast<size_t>(length * shape.kv_heads * shape.head_dim);
    q_.resize(cells * static_cast<size_t>(shape.group));
    k_.resize(cells);
    v_.resize(cells);
    for (float& x : q_) x = 2.0f * normal(generator);
    for (float& x : k_) x = normal(generator);
    for (float& x : v_) x = normal(generator);

    const int32_t blocks = (length + shape.block_tokens - 1) / shape.block_tokens;
    table_.resize(static_cast<size_t>(blocks));
    std::iota(table_.begin(), table_.end(), 1);
    std::shuffle(table_.begin(), table_.end(), std::mt19937(block_seed));
    kv_.page_bytes = 2 * 16 * shape.padded_dim() * (shape.type == KvType::kF32 ? 4 : 2);
    kv_.block_tokens = shape.block_tokens;
    kv_.block_bytes = shape.block_tokens / 16 * shape.kv_heads * kv_.page_bytes;
    kv_.num_kv_heads = shape.kv_heads;
    kv_.head_dim = shape.head_dim;
    kv_.padded_dim = shape.padded_dim();
    kv_.type = shape.type;
    pool_.assign(static_cast<size_t>((blocks + 1) * kv_.block_bytes + 64), char(0xff));  // NaN
    const auto base = reinterpret_cast<uintptr_t>(pool_.data());
    kv_.layer_base = reinterpret_cast<char*>((base + 63) / 64 * 64);
    store();
  }

  /// Output of query tokens [begin, end), all heads: [tokens][kv_heads * group][head_dim], called
  /// as one chunk whose context ends at `end`.
  std::vector<float> attend(int32_t begin, int32_t end) const {
    const int64_t d = shape_.head_dim;
    const int64_t padded = shape_.padded_dim();
    const int32_t heads = shape_.kv_heads * shape_.group;
    const auto rows = static_cast<size_t>((end - begin) * shape_.group);
    std::vector<float> out(static_cast<size_t>((end - begin) * heads) * size_t(d));
    for (int32_t head = 0; head < shape_.kv_heads; ++head) {
      std::vector<float> state(rows * size_t(padded), 0.0f);
      std::vector<float> max(rows, -std::numeric_limits<float>::infinity());
      std::vector<float> sum(rows, 0.0f);
      for (int32_t split = 0; split * kAttentionSplit < end; ++split) {
        std::vector<float> partial(rows * size_t(padded), NAN);
        std::vector<float> partial_max(rows, NAN);
        std::vector<float> partial_sum(rows, NAN);
        AttentionArgs args{};
        args.kv = kv_;
        args.block_table = table_.data();
        args.kv_head = head;
        args.heads_per_kv = shape_.group;
        args.q = q_.data() + (int64_t{begin} * heads + head * shape_.group) * d;
        args.q_stride = heads * d;
        args.num_queries = end - begin;
        args.first_position = begin;
        args.split = split;
        args.window = shape_.window;
        args.scale = scale();
        args.soft_cap = shape_.soft_cap;
        args.partial_out = partial.data();
        args.partial_max = partial_max.data();
        args.partial_sum = partial_sum.data();
        kernels_.attention(args);
        kernels_.fold({partial.data(), partial_max.data(), partial_sum.data(), state.data(),
                       max.data(), sum.data(), static_cast<int64_t>(rows), shape_.padded_dim()});
      }
      for (size_t r = 0; r < rows; ++r) {
        const auto token = static_cast<int64_t>(r) / shape_.group;
        const auto h = static_cast<int64_t>(r) % shape_.group + head * shape_.group;
        for (int64_t i = 0; i < d; ++i) {
          out[size_t((token * heads + h) * d + i)] = state[r * size_t(padded) + size_t(i)] / sum[r];
        }
      }
    }
    return out;
  }

  /// The same in double, from the elements the pages hold.
  std::vector<double> exact(int32_t token) const {
    const int32_t d = shape_.head_dim;
    const int32_t heads = shape_.kv_heads * shape_.group;
    std::vector<double> out(static_cast<size_t>(heads * d), 0.0);
    const int32_t from = shape_.window > 0 ? std::max(0, token + 1 - shape_.window) : 0;
    for (int32_t h = 0; h < heads; ++h) {
      std::vector<double> scores;
      const float* q = q_.data() + size_t((token * heads + h) * d);
      for (int32_t t = from; t <= token; ++t) {
        double dot = 0;
        for (int32_t i = 0; i < d; ++i) dot += double{q[i]} * rounded(k_[at(t, h, i)]);
        const double cap = shape_.soft_cap;
        const double score = dot * scale();
        scores.push_back(cap > 0 ? cap * std::tanh(score / cap) : score);
      }
      const double max = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& s : scores) sum += s = std::exp(s - max);
      for (int32_t t = from; t <= token; ++t) {
        for (int32_t i = 0; i < d; ++i) {
          out[size_t(h * d + i)] += scores[size_t(t - from)] / sum * rounded(v_[at(t, h, i)]);
        }
      }
    }
    return out;
  }

  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }

 private:
  size_t at(int32_t token, int32_t head, int32_t i) const {
    return static_cast<size_t>((token * shape_.kv_heads + head / shape_.group) * shape_.head_dim +
                               i);
  }
  double rounded(float x) const {
    if (shape_.type == KvType::kBF16) return bf16_to_f32(f32_to_bf16(x));
    return shape_.type == KvType::kF16 ? f16_to_f32(f32_to_f16(x)) : x;
  }

  void store() {
    std::vector<int32_t> slots;
    for (int32_t t = 0; t < length_; ++t) {
      slots.push_back(table_[size_t(t / shape_.block_tokens)] * shape_.block_tokens +
                      t % shape_.block_tokens);
    }
    const int64_t stride = int64_t{shape_.kv_heads} * shape_.head_dim;
    kernels_.store_kv({kv_, k_.data(), v_.data(), stride, stride, slots.data(), length_});
  }

  Shape shape_;
  KernelTable kernels_;
  int32_t length_;
  KvArgs kv_{};
  std::vector<float> q_, k_, v_;
  std::vector<int32_t> table_;
  std::vector<char> pool_;
};

/// Largest difference over the norm of the exact output.
double relative_error(const float* got, const std::vector<double>& want) {
  double worst = 0;
  double norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - want[i]));
    norm = std::max(norm, std::abs(want[i]));
  }
  return worst / norm;
}

std::vector<Shape> shapes() {
  constexpr KvType kF32 = KvType::kF32;
  constexpr KvType kBF16 = KvType::kBF16;
  constexpr KvType kF16 = KvType::kF16;
  return {{64, 2, 3, 0, kF32, 16},          {64, 3, 3, 0, kBF16, 16},
          {128, 2, 4, 0, kBF16, 32},        {128, 1, 16, 0, kF32, 16},
          {80, 2, 1, 0, kBF16, 16},         {32, 1, 7, 0, kF32, 48},
          {64, 2, 2, 100, kF32, 16},        {64, 1, 4, 600, kBF16, 16},
          {256, 1, 1, 0, kBF16, 16},        {16, 1, 2, 1, kF32, 16},
          {64, 2, 3, 0, kF16, 16},          {128, 1, 4, 333, kF16, 32},
          {24, 2, 3, 0, kF32, 16},          {24, 2, 5, 0, kBF16, 16},
          {72, 1, 2, 513, kF16, 16},        {2, 1, 1, 17, kF16, 16},
          {64, 1, 4, 0, kF32, 16, 1.25f},   {128, 2, 2, 130, kBF16, 16, 30.0f},
          {40, 1, 3, 512, kF16, 16, 0.75f}, {64, 2, 2, 16, kF16, 16}};
}

TEST(Attention, EqualsTheDefinitionInDouble) {
  for (const Shape& shape : shapes()) {
    for (const Level level : available_levels()) {
      const int32_t length = level == Level::kScalar ? 530 : 1100;
      const Sequence sequence(shape, kernel_table(level), length, 1);
      // bf16 pages: queries and probabilities may be rounded to bf16 too (kernels' choice).
      const double tolerance = shape.type == KvType::kBF16 && level == Level::kAvx512 ? 2e-2 : 1e-5;
      for (const int32_t token : {0, 1, 15, 16, 17, 77, 511, 512, length - 1}) {
        const std::vector<float> got = sequence.attend(token, token + 1);
        EXPECT_LT(relative_error(got.data(), sequence.exact(token)), tolerance)
            << level_name(level) << " d=" << shape.head_dim << " window=" << shape.window
            << " token=" << token;
      }
    }
  }
}

TEST(Attention, ChunksGiveTheBitsOfSingleTokens) {
  for (const Shape& shape : shapes()) {
    for (const Level level : available_levels()) {
      if (level == Level::kScalar && shape.head_dim > 64) continue;  // same code, slow
      const int32_t length = 547;
      const Sequence sequence(shape, kernel_table(level), length, 1);
      for (const auto& [begin, end] :
           {std::pair{0, 40}, std::pair{30, 47}, std::pair{505, 547}, std::pair{511, 513}}) {
        const std::vector<float> chunk = sequence.attend(begin, end);
        const size_t width = chunk.size() / static_cast<size_t>(end - begin);
        for (int32_t token = begin; token < end; ++token) {
          const std::vector<float> alone = sequence.attend(token, token + 1);
          ASSERT_EQ(
              0, std::memcmp(alone.data(), chunk.data() + size_t(token - begin) * width, width * 4))
              << level_name(level) << " d=" << shape.head_dim << " token " << token;
        }
      }
    }
  }
}

TEST(Attention, BlockPlacementChangesNothing) {
  for (const Shape& shape : shapes()) {
    const KernelTable kernels = kernel_table(available_levels().back());
    const Sequence one(shape, kernels, 300, 1);
    const Sequence other(shape, kernels, 300, 2);
    EXPECT_EQ(one.attend(290, 300), other.attend(290, 300));
  }
}

TEST(Attention, LevelsAgreeWherePagesAreWidened) {
  for (const Shape& shape : shapes()) {
    if (shape.type == KvType::kBF16) continue;  // AVX-512 multiplies bf16 pairs
    std::vector<float> first;
    for (const Level level : available_levels()) {
      const Sequence sequence(shape, kernel_table(level), 600, 1);
      const std::vector<float> out = sequence.attend(590, 600);
      if (first.empty()) first = out;
      EXPECT_EQ(first, out) << level_name(level) << " d=" << shape.head_dim;
    }
  }
}

TEST(Attention, ASoftCapShows) {
  Shape shape{64, 1, 4, 0, KvType::kF32, 16};
  const KernelTable kernels = kernel_table(available_levels().back());
  const Sequence plain(shape, kernels, 60, 1);
  shape.soft_cap = 1.25f;
  const Sequence capped(shape, kernels, 60, 1);
  EXPECT_GT(relative_error(plain.attend(59, 60).data(), capped.exact(59)), 1e-2);
}

/// Every window against every length near the edges of pages and splits.
TEST(Attention, WindowsEndWhereTheyShould) {
  for (const Level level : available_levels()) {
    for (const int32_t window : {1, 15, 16, 17, 511, 512, 513, 1024}) {
      const Shape shape{16, 1, 1, window, KvType::kF32, 16};
      const Sequence sequence(shape, kernel_table(level), 1100, 1);
      for (const int32_t token : {0, 14, 15, 16, 510, 511, 512, 513, 527, 1023, 1024, 1099}) {
        const std::vector<float> got = sequence.attend(token, token + 1);
        EXPECT_LT(relative_error(got.data(), sequence.exact(token)), 1e-5)
            << level_name(level) << " window=" << window << " token=" << token;
      }
    }
  }
}

}  // namespace
}  // namespace quire::backend::cpu
