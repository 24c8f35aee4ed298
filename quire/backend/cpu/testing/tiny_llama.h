// TinyLlama: a small random model for tests: recorded as a Program, driven over paged KV, and
// computed plainly in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/program_builder.h"

namespace quire::backend::cpu {

struct TinyConfig {
  int32_t layers = 2;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 16;
  int64_t ffn = 96;
  int64_t vocab = 50;
  int32_t window = 0;
  float soft_cap = 0;
  Layout layout = Layout::kDense;
  DType dtype = DType::kF32;  // of dense weights
  ActType act = ActType::kF32;
  DType kv_dtype = DType::kF32;
  int32_t block_tokens = 16;
  int32_t num_blocks = 40;
  int64_t max_tokens = 128;

  int64_t hidden() const { return int64_t{heads} * head_dim; }
};

/// Random rows, the same for the same seed.
class RandomReader : public WeightReader {
 public:
  RandomReader(const TinyConfig& config, int64_t in, int64_t out, uint32_t seed) : seed_(seed) {
    spec_.name = "random";
    spec_.layout = config.layout;
    spec_.dtype = config.dtype;
    spec_.in = in;
    spec_.out = out;
    if (config.layout != Layout::kDense) spec_.group = 32;
    if (config.layout == Layout::kInt4Group) spec_.offset = Offset::kMin;
  }
  const WeightSpec& spec() const override { return spec_; }
  void read(int64_t begin, int64_t count, WeightRows& rows) const override {
    rows = {};
    const auto scale = 1.0f / std::sqrt(static_cast<float>(spec_.in));
    for (int64_t row = begin; row < begin + count; ++row) {
      std::mt19937 generator(seed_ * 7919u + static_cast<uint32_t>(row));
      std::normal_distribution<float> normal(0.0f, 1.0f);
      for (int64_t k = 0; k < spec_.in; ++k) {
        if (spec_.layout == Layout::kDense) {
          const float value = normal(generator) * scale;
          rows.values.push_back(spec_.dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(value))
                                                            : value);
        } else {
          const uint32_t levels = spec_.layout == Layout::kInt4Group ? 16u : 255u;
          rows.codes.push_back(static_cast<uint8_t>(generator() % levels));
        }
      }
      for (int64_t g = 0; g < spec_.num_groups(); ++g) {
        const float step = scale * (spec_.layout == Layout::kInt4Group ? 0.25f : 0.015f);
        rows.scales.push_back(f32_to_f16(step * (1.0f + 0.1f * normal(generator))));
        if (spec_.offset == Offset::kMin) rows.mins.push_back(f32_to_f16(-7.5f * step));
      }
    }
  }

 private:
  WeightSpec spec_;
  uint32_t seed_;
};

struct TinyLayer {
  std::shared_ptr<const PackedWeight> q, k, v, o, gate, up, down;
  std::vector<float> norm, post_norm, q_bias;
};

/// The weights, shared by every program recorded from them.
class TinyLlama {
 public:
  TinyLlama(const TinyConfig& config, Backend& backend) : config_(config) {
    uint32_t seed = 1;
    const auto weight = [&](int64_t in, int64_t out) {
      return backend.pack(RandomReader(config, in, out, ++seed));
    };
    const int64_t hidden = config.hidden();
    const int64_t kv = int64_t{config.kv_heads} * config.head_dim;
    embed_ = weight(hidden, config.vocab);
    for (int32_t i = 0; i < config.layers; ++i) {
      layers_.push_back({weight(hidden, hidden), weight(hidden, kv), weight(hidden, kv),
                         weight(hidden, hidden), weight(hidden, config.ffn),
                         weight(hidden, config.ffn), weight(config.ffn, hidden),
                         vector(hidden, ++seed, 1.0f), vector(hidden, ++seed, 1.0f),
                         vector(hidden, ++seed, 0.0f)});
    }
    norm_ = vector(hidden, ++seed, 1.0f);
    for (int32_t i = 0; i < config.head_dim / 2; ++i) {
      frequencies_.push_back(static_cast<float>(1.0 / std::pow(100.0, 2.0 * i / config.head_dim)));
    }
  }

  std::shared_ptr<const Program> record() const {
    ProgramBuilder::Options options;
    options.max_tokens = config_.max_tokens;
    options.cache_groups = {{config_.layers, config_.kv_heads, config_.head_dim, config_.kv_dtype,
                             config_.block_tokens, config_.window}};
    ProgramBuilder p(options);
    const AttentionShape shape = attention_shape();
    Tensor x = p.embed(embed_);
    for (int32_t i = 0; i < config_.layers; ++i) {
      const TinyLayer& layer = layers_[static_cast<size_t>(i)];
      const ProgramBuilder::Scope scope(p, "layers." + std::to_string(i));
      const Tensor n = p.rms_norm(x, layer.norm, 1e-5f);
      Tensor q = p.matmul(n, layer.q, layer.q_bias, config_.act, "q");
      Tensor k = p.matmul(n, layer.k, {}, config_.act, "k");
      const Tensor v = p.matmul(n, layer.v, {}, config_.act, "v");
      q = p.rope(q, frequencies_, config_.heads, config_.head_dim);
      k = p.rope(k, frequencies_, config_.kv_heads, config_.head_dim);
      p.store_kv(k, v, shape, 0, i);
      const Tensor a = p.attention(q, shape, 0, i);
      x = p.add(x, p.matmul(a, layer.o, {}, config_.act, "o"));
      const Tensor m = p.rms_norm(x, layer.post_norm, 1e-5f);
      const Tensor g = p.gated_act(p.matmul(m, layer.gate, {}, config_.act, "gate"),
                                   p.matmul(m, layer.up, {}, config_.act, "up"));
      x = p.add(x, p.matmul(g, layer.down, {}, config_.act, "down"));
    }
    const Tensor last = p.rms_norm(p.gather_logits_rows(x), norm_, 1e-5f);
    return std::make_shared<Program>(p.finish(p.matmul(last, embed_, {}, config_.act, "head")));
  }

  /// Logits of the last token, in double. `rope` off is a planted fault.
  std::vector<double> exact(const std::vector<int32_t>& tokens, bool rope = true) const {
    using Rows = std::vector<std::vector<double>>;
    Rows x;
    for (const int32_t token : tokens) x.push_back(row_of(*embed_, token));
    for (const TinyLayer& layer : layers_) {
      const Rows n = normed(x, layer.norm);
      Rows q = times(n, *layer.q, layer.q_bias);
      Rows k = times(n, *layer.k, {});
      const Rows v = times(n, *layer.v, {});
      for (size_t t = 0; rope && t < x.size(); ++t) {
        rotate(q[t], t);
        rotate(k[t], t);
      }
      accumulate(x, times(attend(q, k, v), *layer.o, {}));
      const Rows m = normed(x, layer.post_norm);
      Rows g = times(m, *layer.gate, {});
      const Rows u = times(m, *layer.up, {});
      for (size_t t = 0; t < g.size(); ++t) {
        for (size_t i = 0; i < g[t].size(); ++i) g[t][i] *= u[t][i] / (1 + std::exp(-g[t][i]));
      }
      accumulate(x, times(g, *layer.down, {}));
    }
    return times(normed({x.back()}, norm_), *embed_, {})[0];
  }

  const TinyConfig& config() const { return config_; }

 private:
  using Matrix = std::vector<std::vector<double>>;

  static std::vector<float> vector(int64_t n, uint32_t seed, float mean) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(mean, 0.2f);
    std::vector<float> out(static_cast<size_t>(n));
    for (float& x : out) x = normal(generator);
    return out;
  }
  AttentionShape attention_shape() const {
    return {config_.heads,    config_.kv_heads,
            config_.head_dim, 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
            config_.window,   config_.soft_cap};
  }
  static std::vector<double> row_of(const PackedWeight& weight, int64_t index) {
    std::vector<float> row(static_cast<size_t>(weight.spec.in));
    unpack_row(weight, index, row.data());
    return {row.begin(), row.end()};
  }
  static Matrix times(const Matrix& x, const PackedWeight& weight, const std::vector<float>& bias) {
    Matrix out(x.size());
    for (int64_t o = 0; o < weight.spec.out; ++o) {
      const std::vector<double> row = row_of(weight, o);
      for (size_t t = 0; t < x.size(); ++t) {
        const double start = bias.empty() ? 0.0 : bias[static_cast<size_t>(o)];
        out[t].push_back(std::inner_product(row.begin(), row.end(), x[t].begin(), start));
      }
    }
    return out;
  }
  static Matrix normed(Matrix x, const std::vector<float>& weight) {
    for (auto& row : x) {
      const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(row.size()) + 1e-5);
      for (size_t i = 0; i < row.size(); ++i) row[i] *= inverse * weight[i];
    }
    return x;
  }
  static void accumulate(Matrix& x, const Matrix& y) {
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
    }
  }
  void rotate(std::vector<double>& row, size_t position) const {
    const auto d = static_cast<size_t>(config_.head_dim);
    for (size_t head = 0; head < row.size() / d; ++head) {
      for (size_t i = 0; i < d / 2; ++i) {
        const double angle = static_cast<double>(position) * frequencies_[i];
        double& a = row[head * d + i];
        double& b = row[head * d + i + d / 2];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
    }
  }
  Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v) const {
    const auto d = static_cast<size_t>(config_.head_dim);
    const auto group = static_cast<size_t>(config_.heads / config_.kv_heads);
    const auto window = static_cast<size_t>(config_.window);
    Matrix out(q.size(), std::vector<double>(q[0].size(), 0.0));
    for (size_t t = 0; t < q.size(); ++t) {
      const size_t from = window > 0 && t + 1 > window ? t + 1 - window : 0;
      for (size_t head = 0; head < q[0].size() / d; ++head) {
        const size_t kv = head / group * d;
        std::vector<double> p;
        for (size_t s = from; s <= t; ++s) {
          double dot = 0;
          for (size_t i = 0; i < d; ++i) dot += q[t][head * d + i] * k[s][kv + i];
          dot *= attention_shape().scale;
          if (config_.soft_cap > 0) dot = config_.soft_cap * std::tanh(dot / config_.soft_cap);
          p.push_back(std::exp(dot));
        }
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (size_t s = from; s <= t; ++s) {
          for (size_t i = 0; i < d; ++i) out[t][head * d + i] += p[s - from] / sum * v[s][kv + i];
        }
      }
    }
    return out;
  }

  TinyConfig config_;
  std::shared_ptr<const PackedWeight> embed_;
  std::vector<TinyLayer> layers_;
  std::vector<float> norm_;
  std::vector<float> frequencies_;
};

/// Sequences over one backend's pages. KV memory starts as NaN.
class TinyDriver {
 public:
  struct Row {
    int sequence;
    std::vector<int32_t> tokens;  // the next ones
  };

  TinyDriver(CpuBackend& backend, const TinyLlama& model, uint32_t block_seed = 1)
      : backend_(backend), config_(model.config()), program_(model.record()) {
    const CacheGroupSpec& group = program_->cache_groups[0];
    KvSlab slab;
    slab.num_blocks = config_.num_blocks;
    slab.layer_stride = slab.num_blocks * group.block_layer_bytes();
    memory_ = HugeBuffer(slab.layer_stride * group.num_layers, MemoryTag::kKvCache, nullptr);
    std::fill_n(reinterpret_cast<char*>(memory_.data()), memory_.size(), char(0xff));
    slab.data = memory_.data();
    slab.num_swap_blocks = config_.num_blocks;
    slab.swap_block_stride = group.block_bytes() + 64;
    swap_.resize(static_cast<size_t>(slab.num_swap_blocks * slab.swap_block_stride));
    slab.swap = swap_.data();
    backend_.load(program_, {&slab, 1});
    free_.resize(static_cast<size_t>(config_.num_blocks));
    std::iota(free_.begin(), free_.end(), 0);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(block_seed));
  }

  ~TinyDriver() { backend_.unload(); }
  TinyDriver(const TinyDriver&) = delete;
  TinyDriver& operator=(const TinyDriver&) = delete;

  const Program& program() const { return *program_; }

  /// Runs one step; returns the logits of each row's last token.
  std::vector<std::vector<float>> step(const std::vector<Row>& rows) {
    tokens_.clear();
    positions_.clear();
    slots_.clear();
    starts_.assign(1, 0);
    contexts_.clear();
    logits_rows_.clear();
    const auto width = static_cast<size_t>(config_.num_blocks);
    tables_.assign(rows.size() * width, -1);  // what no token of the row needs is never looked at
    for (size_t r = 0; r < rows.size(); ++r) {
      Sequence& sequence = at(rows[r].sequence);
      for (const int32_t token : rows[r].tokens) append(sequence, token);
      std::copy(sequence.blocks.begin(), sequence.blocks.end(),
                tables_.begin() + static_cast<int64_t>(r * width));
      starts_.push_back(static_cast<int32_t>(tokens_.size()));
      contexts_.push_back(sequence.length);
      logits_rows_.push_back(starts_.back() - 1);
    }
    launch(width);
    std::vector<std::vector<float>> out;
    for (size_t r = 0; r < rows.size(); ++r) {
      const float* first = backend_.logits() + static_cast<int64_t>(r) * backend_.logits_stride();
      out.emplace_back(first, first + config_.vocab);
    }
    return out;
  }

  /// Runs the last step again, as it is: same tokens, same places.
  void repeat() { launch(static_cast<size_t>(config_.num_blocks)); }

  /// Makes `to` a copy of `from`: whole blocks are shared, the last partial one is copied.
  void fork(int from, int to) {
    Sequence copy = at(from);
    if (copy.length % config_.block_tokens != 0) {
      const int32_t source = copy.blocks.back();
      copy.blocks.back() = take_block();
      const BlockCopy block{.source = source, .destination = copy.blocks.back()};
      backend_.copy_blocks({&block, 1});
    }
    at(to) = copy;
  }

  /// Moves a sequence's blocks out to the swap space and back into others, in one list, and fills
  /// the old ones with NaN through a block that never held anything.
  void swap_out_and_in(int index) {
    Sequence& sequence = at(index);
    const int32_t never_written = take_block();
    std::vector<BlockCopy> copies;
    for (const int32_t block : sequence.blocks) {
      const int32_t place = config_.num_blocks - 1 - block;
      copies.push_back({.kind = BlockCopy::Kind::kSwapOut, .source = block, .destination = place});
      copies.push_back({.source = never_written, .destination = block});
    }
    for (int32_t& block : sequence.blocks) {
      const int32_t place = config_.num_blocks - 1 - block;
      block = take_block();
      copies.push_back({.kind = BlockCopy::Kind::kSwapIn, .source = place, .destination = block});
    }
    backend_.copy_blocks(copies);
  }

 private:
  struct Sequence {
    std::vector<int32_t> blocks;
    int32_t length = 0;
  };

  Sequence& at(int index) {
    if (static_cast<size_t>(index) >= sequences_.size()) sequences_.resize(size_t(index) + 1);
    return sequences_[static_cast<size_t>(index)];
  }
  int32_t take_block() {
    const int32_t block = free_.back();
    free_.pop_back();
    return block;
  }
  void append(Sequence& sequence, int32_t token) {
    const int32_t in_block = sequence.length % config_.block_tokens;
    if (in_block == 0) sequence.blocks.push_back(take_block());
    tokens_.push_back(token);
    positions_.push_back(sequence.length++);
    slots_.push_back(sequence.blocks.back() * config_.block_tokens + in_block);
  }
  void launch(size_t width) {
    const GroupMeta group{slots_, tables_, static_cast<int32_t>(width)};
    const StepMeta meta{tokens_, positions_, starts_, contexts_, logits_rows_, {&group, 1}};
    backend_.launch(meta);
    backend_.wait();
  }

  CpuBackend& backend_;
  TinyConfig config_;
  std::shared_ptr<const Program> program_;
  HugeBuffer memory_;
  std::vector<std::byte> swap_;
  std::vector<int32_t> free_;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> tokens_, positions_, slots_, starts_, contexts_, logits_rows_, tables_;
};

}  // namespace quire::backend::cpu
