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
  bool is_bf16 = false;
  int32_t block_tokens = 16;
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
    kv_.page_bytes = 2 * 16 * shape.head_dim * (shape.is_bf16 ? 2 : 4);
    kv_.block_tokens = shape.block_tokens;
    kv_.block_bytes = shape.block_tokens / 16 * shape.kv_heads * kv_.page_bytes;
    kv_.num_kv_heads = shape.kv_heads;
    kv_.head_dim = shape.head_dim;
    kv_.is_bf16 = shape.is_bf16;
    pool_.assign(static_cast<size_t>((blocks + 1) * kv_.block_bytes + 64), char(0xff));  // NaN
    const auto base = reinterpret_cast<uintptr_t>(pool_.data());
    kv_.layer_base = reinterpret_cast<char*>((base + 63) / 64 * 64);
    store();
  }

  /// Output of query tokens [begin, end), all heads: [tokens][kv_heads * group][head_dim], called
  /// as one chunk whose context ends at `end`.
  std::vector<float> attend(int32_t begin, int32_t end) const {
    const int64_t d = shape_.head_dim;
    const int32_t heads = shape_.kv_heads * shape_.group;
    const auto rows = static_cast<size_t>((end - begin) * shape_.group);
    std::vector<float> out(static_cast<size_t>((end - begin) * heads) * size_t(d));
    for (int32_t head = 0; head < shape_.kv_heads; ++head) {
      std::vector<float> state(rows * size_t(d), 0.0f);
      std::vector<float> max(rows, -std::numeric_limits<float>::infinity());
      std::vector<float> sum(rows, 0.0f);
      for (int32_t split = 0; split * kAttentionSplit < end; ++split) {
        std::vector<float> partial(rows * size_t(d), NAN);
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
        args.partial_out = partial.data();
        args.partial_max = partial_max.data();
        args.partial_sum = partial_sum.data();
        kernels_.attention(args);
        kernels_.fold({partial.data(), partial_max.data(), partial_sum.data(), state.data(),
                       max.data(), sum.data(), static_cast<int64_t>(rows), shape_.head_dim});
      }
      for (size_t r = 0; r < rows; ++r) {
        const auto token = static_cast<int64_t>(r) / shape_.group;
        const auto h = static_cast<int64_t>(r) % shape_.group + head * shape_.group;
        for (int64_t i = 0; i < d; ++i) {
          out[size_t((token * heads + h) * d + i)] = state[r * size_t(d) + size_t(i)] / sum[r];
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
        scores.push_back(dot * scale());
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
  double rounded(float x) const { return shape_.is_bf16 ? bf16_to_f32(f32_to_bf16(x)) : x; }

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
  return {{64, 2, 3, 0, false, 16},   {64, 3, 3, 0, true, 16},   {128, 2, 4, 0, true, 32},
          {128, 1, 16, 0, false, 16}, {80, 2, 1, 0, true, 16},   {32, 1, 7, 0, false, 48},
          {64, 2, 2, 100, false, 16}, {64, 1, 4, 600, true, 16}, {256, 1, 1, 0, true, 16},
          {16, 1, 2, 1, false, 16}};
}

TEST(Attention, EqualsTheDefinitionInDouble) {
  for (const Shape& shape : shapes()) {
    for (const Level level : available_levels()) {
      const int32_t length = level == Level::kScalar ? 530 : 1100;
      const Sequence sequence(shape, kernel_table(level), length, 1);
      // bf16 pages: queries and probabilities may be rounded to bf16 too (kernels' choice).
      const double tolerance = shape.is_bf16 && level == Level::kAvx512 ? 2e-2 : 1e-5;
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

TEST(Attention, VectorLevelsAgreeOnFp32Pages) {
  const Shape shape{64, 2, 3, 0, false, 16};
  std::vector<float> first;
  for (const Level level : available_levels()) {
    const Sequence sequence(shape, kernel_table(level), 600, 1);
    const std::vector<float> out = sequence.attend(590, 600);
    if (first.empty()) first = out;
    EXPECT_EQ(first, out) << level_name(level);
  }
}

}  // namespace
}  // namespace quire::backend::cpu
