#include "tests/golden/reference_backend.h"

#include <algorithm>
#include <cmath>

#include "quire/base/check.h"

namespace quire::golden {

using backend::ActType;
using backend::Op;
using backend::OpKind;
using backend::PackedWeight;
using backend::WeightRows;
using backend::WeightSpec;

namespace {

void round_to_int8(float* values, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
  const float scale = largest / 127.0f;
  if (scale == 0.0f) return;
  for (int64_t i = 0; i < count; ++i) values[i] = std::nearbyint(values[i] / scale) * scale;
}

}  // namespace

std::string ReferenceBackend::unsupported(const backend::Program& /*program*/, const Op& op) const {
  if (op.attention.soft_cap != 0) return "soft caps";
  return op.attention.window != 0 ? "sliding windows" : "";
}

ActType ReferenceBackend::preferred_activation(const WeightSpec& /*spec*/) const {
  return ActType::kF32;
}

std::shared_ptr<const PackedWeight> ReferenceBackend::pack(const backend::WeightReader& reader) {
  auto weight = std::make_shared<PackedWeight>();
  weight->spec = reader.spec();
  const WeightSpec& spec = weight->spec;
  std::vector<float>& expanded = weights_[weight.get()];
  expanded.resize(static_cast<size_t>(spec.out * spec.in));
  WeightRows rows;
  for (int64_t r = 0; r < spec.out; ++r) {
    reader.read(r, 1, rows);
    backend::decode_row(spec, rows, 0, expanded.data() + r * spec.in);
  }
  reader.done();
  return weight;
}

void ReferenceBackend::load(std::shared_ptr<const backend::Program> program,
                            std::span<const backend::KvSlab> slabs) {
  program_ = std::move(program);
  tensors_.assign(program_->tensors.size(), {});
  kv_.clear();
  for (size_t g = 0; g < slabs.size(); ++g) {
    const auto& group = program_->cache_groups[g];
    const auto size = static_cast<size_t>(slabs[g].num_blocks * group.block_tokens *
                                          group.num_kv_heads * group.head_dim);
    // What was never stored must not be read: NaN would show.
    const KvLayer layer{.k = std::vector<float>(size, NAN), .v = std::vector<float>(size, NAN)};
    kv_.emplace_back(static_cast<size_t>(group.num_layers), layer);
  }
}

void ReferenceBackend::copy_blocks(std::span<const backend::BlockCopy> copies) {
  for (const auto& [kind, group_index, from, to] : copies) {
    QUIRE_CHECK(kind == backend::BlockCopy::Kind::kWithinPool);
    const auto& group = program_->cache_groups[static_cast<size_t>(group_index)];
    const int64_t size = int64_t{group.block_tokens} * group.num_kv_heads * group.head_dim;
    for (KvLayer& layer : kv_[static_cast<size_t>(group_index)]) {
      std::copy_n(layer.k.begin() + from * size, size, layer.k.begin() + to * size);
      std::copy_n(layer.v.begin() + from * size, size, layer.v.begin() + to * size);
    }
  }
}

void ReferenceBackend::launch(const backend::StepMeta& meta) {
  meta_ = &meta;
  for (const Op& op : program_->ops) run(op);
  meta_ = nullptr;
}

const float* ReferenceBackend::logits() const {
  return tensors_[static_cast<size_t>(program_->logits)].data();
}

int64_t ReferenceBackend::num_rows(int32_t tensor) const {
  const auto rows = program_->tensors[static_cast<size_t>(tensor)].rows;
  return rows == backend::Rows::kTokens ? meta_->num_tokens() : meta_->num_logits();
}

int64_t ReferenceBackend::cols(int32_t tensor) const {
  return program_->tensors[static_cast<size_t>(tensor)].cols;
}

const std::vector<float>& ReferenceBackend::vector_of(const Op& op) const {
  return program_->vectors[static_cast<size_t>(op.vector)];
}

ReferenceBackend::KvLayer& ReferenceBackend::kv_of(const Op& op) {
  return kv_[static_cast<size_t>(op.cache_group)][static_cast<size_t>(op.layer)];
}

void ReferenceBackend::run(const Op& op) {
  if (op.out >= 0) values(op.out).resize(static_cast<size_t>(num_rows(op.out) * cols(op.out)));
  switch (op.kind) {
    case OpKind::kEmbed:
      return embed(op);
    case OpKind::kRmsNorm:
      return rms_norm(op);
    case OpKind::kPrepare:
      return prepare(op);
    case OpKind::kMatmul:
      return matmul(op);
    case OpKind::kRope:
      return rope(op);
    case OpKind::kStoreKv:
      return store_kv(op);
    case OpKind::kAttention:
      return attention(op);
    case OpKind::kGatedAct:
    case OpKind::kAdd:
      return elementwise(op);
    case OpKind::kGatherRows:
      return gather_rows(op);
  }
}

void ReferenceBackend::embed(const Op& op) {
  const auto& table = weights_.at(program_->weights[static_cast<size_t>(op.weight)].get());
  const int64_t width = cols(op.out);
  float* out = values(op.out).data();
  for (const int32_t id : meta_->token_ids) {
    out = std::copy_n(table.begin() + id * width, width, out);
  }
}

void ReferenceBackend::rms_norm(const Op& op) {
  const int64_t width = cols(op.out);
  for (int64_t r = 0; r < num_rows(op.out); ++r) {
    const float* x = values(op.in[0]).data() + r * width;
    float* out = values(op.out).data() + r * width;
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += double{x[i]} * x[i];
    const double scale =
        1.0 / std::sqrt(sum / static_cast<double>(width) + static_cast<double>(op.epsilon));
    for (int64_t i = 0; i < width; ++i) {
      out[i] = static_cast<float>(x[i] * scale) * vector_of(op)[static_cast<size_t>(i)];
    }
  }
}

void ReferenceBackend::prepare(const Op& op) {
  std::vector<float>& out = values(op.out);
  out = values(op.in[0]);
  const auto& decl = program_->tensors[static_cast<size_t>(op.out)];
  if (decl.form == backend::TensorForm::kPreparedBF16) {
    for (float& value : out) value = bf16_to_f32(f32_to_bf16(value));
    return;
  }
  for (int64_t at = 0; at < static_cast<int64_t>(out.size()); at += decl.group) {
    round_to_int8(out.data() + at, decl.group);
  }
}

void ReferenceBackend::matmul(const Op& op) {
  const auto& weight = weights_.at(program_->weights[static_cast<size_t>(op.weight)].get());
  const int64_t in = cols(op.in[0]);
  const int64_t out = cols(op.out);
  const auto rows = static_cast<size_t>(num_rows(op.out));
  // Transposed, so that the inner loop runs over rows.
  std::vector<double> x(static_cast<size_t>(in) * rows);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < static_cast<size_t>(in); ++k) {
      x[k * rows + r] = values(op.in[0])[r * static_cast<size_t>(in) + k];
    }
  }
  std::vector<double> sum(rows);
  for (int64_t o = 0; o < out; ++o) {
    const double bias = op.vector < 0 ? 0.0 : vector_of(op)[static_cast<size_t>(o)];
    std::fill(sum.begin(), sum.end(), bias);
    for (int64_t k = 0; k < in; ++k) {
      const double w = weight[static_cast<size_t>(o * in + k)];
      const double* column = x.data() + static_cast<size_t>(k) * rows;
      for (size_t r = 0; r < rows; ++r) sum[r] += w * column[r];
    }
    for (size_t r = 0; r < rows; ++r) {
      values(op.out)[r * static_cast<size_t>(out) + static_cast<size_t>(o)] =
          static_cast<float>(sum[r]);
    }
  }
}

void ReferenceBackend::rope(const Op& op) {
  const int64_t head_dim = op.attention.head_dim;
  const int64_t half = head_dim / 2;
  for (int64_t t = 0; t < meta_->num_tokens(); ++t) {
    const auto position = static_cast<float>(meta_->positions[static_cast<size_t>(t)]);
    for (int64_t head = 0; head < op.attention.num_heads; ++head) {
      float* x = values(op.in[0]).data() + t * cols(op.in[0]) + head * head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const float angle = position * vector_of(op)[static_cast<size_t>(i)];
        const float c = std::cos(angle);
        const float s = std::sin(angle);
        const float a = x[i];
        const float b = x[i + half];
        x[i] = a * c - b * s;
        x[i + half] = b * c + a * s;
      }
    }
  }
}

void ReferenceBackend::store_kv(const Op& op) {
  const auto& group = program_->cache_groups[static_cast<size_t>(op.cache_group)];
  const auto& slots = meta_->groups[static_cast<size_t>(op.cache_group)].slots;
  const int64_t width = cols(op.in[0]);
  for (size_t t = 0; t < slots.size(); ++t) {
    if (slots[t] < 0) continue;
    for (int64_t i = 0; i < width; ++i) {
      const auto from = t * static_cast<size_t>(width) + static_cast<size_t>(i);
      const auto to = static_cast<size_t>(slots[t] * width + i);
      const auto stored = [&](float value) {
        return group.dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(value)) : value;
      };
      kv_of(op).k[to] = stored(values(op.in[0])[from]);
      kv_of(op).v[to] = stored(values(op.in[1])[from]);
    }
  }
}

void ReferenceBackend::attention(const Op& op) {
  for (int64_t row = 0; row < meta_->num_rows(); ++row) {
    const auto r = static_cast<size_t>(row);
    for (int64_t t = meta_->query_start[r]; t < meta_->query_start[r + 1]; ++t) {
      for (int64_t head = 0; head < op.attention.num_heads; ++head) attend(op, row, t, head);
    }
  }
}

void ReferenceBackend::attend(const Op& op, int64_t row, int64_t token, int64_t head) {
  const backend::AttentionShape& shape = op.attention;
  const auto& group = program_->cache_groups[static_cast<size_t>(op.cache_group)];
  const auto& meta = meta_->groups[static_cast<size_t>(op.cache_group)];
  const int64_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
  const auto kv_at = [&](int64_t position) {
    const int64_t entry = row * meta.table_width + position / group.block_tokens;
    const int64_t slot =
        int64_t{meta.block_tables[static_cast<size_t>(entry)]} * group.block_tokens +
        position % group.block_tokens;
    return (slot * shape.num_kv_heads + kv_head) * shape.head_dim;
  };
  const int64_t context = meta_->positions[static_cast<size_t>(token)] + int64_t{1};
  const float* q = values(op.in[0]).data() + token * cols(op.in[0]) + head * shape.head_dim;
  std::vector<double> score(static_cast<size_t>(context));
  for (int64_t p = 0; p < context; ++p) {
    const float* k = kv_of(op).k.data() + kv_at(p);
    double dot = 0;
    for (int64_t i = 0; i < shape.head_dim; ++i) dot += double{q[i]} * k[i];
    score[static_cast<size_t>(p)] = dot * static_cast<double>(shape.scale);
  }
  const double largest = *std::max_element(score.begin(), score.end());
  double total = 0;
  for (double& s : score) total += s = std::exp(s - largest);
  float* out = values(op.out).data() + token * cols(op.out) + head * shape.head_dim;
  for (int64_t i = 0; i < shape.head_dim; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < context; ++p) {
      sum += score[static_cast<size_t>(p)] *
             static_cast<double>(kv_of(op).v[static_cast<size_t>(kv_at(p) + i)]);
    }
    out[i] = static_cast<float>(sum / total);
  }
}

void ReferenceBackend::elementwise(const Op& op) {
  const std::vector<float>& a = values(op.in[0]);
  const std::vector<float>& b = values(op.in[1]);
  std::vector<float>& out = values(op.out);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = op.kind == OpKind::kAdd ? a[i] + b[i] : a[i] / (1.0f + std::exp(-a[i])) * b[i];
  }
}

void ReferenceBackend::gather_rows(const Op& op) {
  const int64_t width = cols(op.out);
  float* out = values(op.out).data();
  for (const int32_t row : meta_->logits_rows) {
    out = std::copy_n(values(op.in[0]).data() + row * width, width, out);
  }
}

}  // namespace quire::golden
