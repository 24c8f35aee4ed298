#include "quire/backend/program_builder.h"

#include <algorithm>
#include <utility>

#include "quire/base/check.h"

namespace quire::backend {

ProgramBuilder::ProgramBuilder(Options options) {
  program_.max_tokens = options.max_tokens;
  program_.max_logits = options.max_logits;
  program_.cache_groups = std::move(options.cache_groups);
}

ProgramBuilder::Scope::Scope(ProgramBuilder& builder, std::string_view name)
    : builder_(builder), length_(builder.prefix_.size()) {
  builder_.prefix_ += name;
  builder_.prefix_ += '.';
}

ProgramBuilder::Scope::~Scope() {
  builder_.prefix_.resize(length_);
}

Tensor ProgramBuilder::new_tensor(Rows rows, TensorForm form, int64_t cols, int64_t group,
                                  std::string_view name) {
  TensorDecl decl;
  decl.name = prefix_ + std::string(name);
  decl.rows = rows;
  decl.form = form;
  decl.cols = cols;
  decl.group = group;
  decl.row_bytes = row_bytes_of(form, cols, group);
  program_.tensors.push_back(std::move(decl));
  return {static_cast<int32_t>(program_.tensors.size()) - 1, rows, cols};
}

Op& ProgramBuilder::push(OpKind kind, std::string_view name) {
  Op& op = program_.ops.emplace_back();
  op.kind = kind;
  op.name = prefix_ + std::string(name);
  return op;
}

int32_t ProgramBuilder::weight_index(const std::shared_ptr<const PackedWeight>& weight) {
  QUIRE_CHECK(weight != nullptr);
  auto& weights = program_.weights;
  const auto found = std::find(weights.begin(), weights.end(), weight);
  if (found != weights.end()) return static_cast<int32_t>(found - weights.begin());
  weights.push_back(weight);
  return static_cast<int32_t>(weights.size()) - 1;
}

int32_t ProgramBuilder::vector_index(const std::vector<float>& vector) {
  auto& vectors = program_.vectors;
  const auto found = std::find(vectors.begin(), vectors.end(), vector);
  if (found != vectors.end()) return static_cast<int32_t>(found - vectors.begin());
  vectors.push_back(vector);
  return static_cast<int32_t>(vectors.size()) - 1;
}

Tensor ProgramBuilder::input(int64_t cols) {
  return new_tensor(Rows::kTokens, TensorForm::kPlain, cols, 0, "input");
}

Tensor ProgramBuilder::embed(const std::shared_ptr<const PackedWeight>& table) {
  const Tensor out = new_tensor(Rows::kTokens, TensorForm::kPlain, table->spec.in, 0, "embed");
  Op& op = push(OpKind::kEmbed, "embed");
  op.weight = weight_index(table);
  op.out = out.index;
  return out;
}

Tensor ProgramBuilder::rms_norm(Tensor x, const std::vector<float>& weight, float epsilon) {
  QUIRE_CHECK(static_cast<int64_t>(weight.size()) == x.cols);
  const Tensor out = new_tensor(x.rows, TensorForm::kPlain, x.cols, 0, "norm");
  Op& op = push(OpKind::kRmsNorm, "norm");
  op.in[0] = x.index;
  op.out = out.index;
  op.vector = vector_index(weight);
  op.epsilon = epsilon;
  return out;
}

Tensor ProgramBuilder::prepared(Tensor x, TensorForm form, int64_t group) {
  const auto key = std::make_tuple(x.index, form, group);
  if (const auto found = prepared_.find(key); found != prepared_.end()) return found->second;
  const Tensor out = new_tensor(x.rows, form, x.cols, group, "prepare");
  Op& op = push(OpKind::kPrepare, "prepare");
  op.in[0] = x.index;
  op.out = out.index;
  prepared_.emplace(key, out);
  return out;
}

Tensor ProgramBuilder::matmul(Tensor x, const std::shared_ptr<const PackedWeight>& weight,
                              const std::vector<float>& bias, ActType act, std::string_view name) {
  const WeightSpec& spec = weight->spec;
  QUIRE_CHECK(spec.in == x.cols);
  QUIRE_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == spec.out);
  Tensor input = x;
  if (act == ActType::kBF16) input = prepared(x, TensorForm::kPreparedBF16, 0);
  if (act == ActType::kI8) {
    QUIRE_CHECK(spec.layout != Layout::kDense);
    input = prepared(x, TensorForm::kPreparedI8, spec.group);
  }
  const Tensor out = new_tensor(x.rows, TensorForm::kPlain, spec.out, 0, name);
  Op& op = push(OpKind::kMatmul, name);
  op.in[0] = input.index;
  op.out = out.index;
  op.weight = weight_index(weight);
  if (!bias.empty()) op.vector = vector_index(bias);
  return out;
}

Tensor ProgramBuilder::rope(Tensor x, const std::vector<float>& inverse_frequencies,
                            int32_t num_heads, int32_t head_dim) {
  QUIRE_CHECK(x.cols == int64_t{num_heads} * head_dim);
  QUIRE_CHECK(static_cast<int32_t>(inverse_frequencies.size()) == head_dim / 2);
  Op& op = push(OpKind::kRope, "rope");
  op.in[0] = x.index;
  op.out = x.index;
  op.vector = vector_index(inverse_frequencies);
  op.attention.num_heads = num_heads;
  op.attention.head_dim = head_dim;
  return x;
}

void ProgramBuilder::store_kv(Tensor k, Tensor v, const AttentionShape& shape, int32_t cache_group,
                              int32_t layer) {
  QUIRE_CHECK(k.cols == int64_t{shape.num_kv_heads} * shape.head_dim && v.cols == k.cols);
  Op& op = push(OpKind::kStoreKv, "store_kv");
  op.in = {k.index, v.index};
  op.attention = shape;
  op.cache_group = cache_group;
  op.layer = layer;
}

Tensor ProgramBuilder::attention(Tensor q, const AttentionShape& shape, int32_t cache_group,
                                 int32_t layer) {
  QUIRE_CHECK(q.cols == int64_t{shape.num_heads} * shape.head_dim);
  const Tensor out = new_tensor(q.rows, TensorForm::kPlain, q.cols, 0, "attention");
  Op& op = push(OpKind::kAttention, "attention");
  op.in[0] = q.index;
  op.out = out.index;
  op.attention = shape;
  op.cache_group = cache_group;
  op.layer = layer;
  return out;
}

Tensor ProgramBuilder::gated_act(Tensor gate, Tensor up) {
  QUIRE_CHECK(gate.cols == up.cols && gate.rows == up.rows);
  const Tensor out = new_tensor(gate.rows, TensorForm::kPlain, gate.cols, 0, "gated_act");
  Op& op = push(OpKind::kGatedAct, "gated_act");
  op.in = {gate.index, up.index};
  op.out = out.index;
  return out;
}

Tensor ProgramBuilder::add(Tensor a, Tensor b) {
  QUIRE_CHECK(a.cols == b.cols && a.rows == b.rows);
  const Tensor out = new_tensor(a.rows, TensorForm::kPlain, a.cols, 0, "add");
  Op& op = push(OpKind::kAdd, "add");
  op.in = {a.index, b.index};
  op.out = out.index;
  return out;
}

Tensor ProgramBuilder::gather_logits_rows(Tensor x) {
  QUIRE_CHECK(x.rows == Rows::kTokens);
  const Tensor out = new_tensor(Rows::kLogits, TensorForm::kPlain, x.cols, 0, "gather_rows");
  Op& op = push(OpKind::kGatherRows, "gather_rows");
  op.in[0] = x.index;
  op.out = out.index;
  return out;
}

Program ProgramBuilder::finish(Tensor logits) {
  QUIRE_CHECK(logits.rows == Rows::kLogits);
  program_.logits = logits.index;
  program_.vocab_size = logits.cols;
  assign_storage(logits.index);
  return std::move(program_);
}

Program ProgramBuilder::finish_stage(Tensor hidden) {
  assign_storage(hidden.index);
  return std::move(program_);
}

// A tensor's storage is given out again only this many operations after its last use, so that a
// chain of row operations (add, norm, prepare) can run row by row without a barrier: within a chain
// no row lies where another row of a dead tensor lay.
constexpr int32_t kReuseDelay = 2;

// First fit by offset: each tensor, in order of its first operation, takes the lowest range that no
// tensor alive at the same time holds. Sizes count the bound of the row symbol, so that the arena
// fits every step.
void ProgramBuilder::assign_storage(int32_t result) {
  auto& tensors = program_.tensors;
  for (int32_t index = 0; index < static_cast<int32_t>(program_.ops.size()); ++index) {
    const Op& op = program_.ops[static_cast<size_t>(index)];
    for (const int32_t used : {op.in[0], op.in[1], op.out}) {
      if (used < 0) continue;
      TensorDecl& tensor = tensors[static_cast<size_t>(used)];
      if (tensor.first_op < 0) tensor.first_op = index;
      tensor.last_op = index;
    }
  }
  tensors[static_cast<size_t>(result)].last_op = static_cast<int32_t>(program_.ops.size());

  std::vector<const TensorDecl*> placed;
  const auto size_of = [&](const TensorDecl& t) { return t.row_bytes * program_.max_rows(t.rows); };
  for (TensorDecl& tensor : tensors) {
    if (tensor.first_op < 0) continue;
    std::vector<std::pair<int64_t, int64_t>>
        taken;  // byte ranges of tensors alive at the same time
    for (const TensorDecl* other : placed) {
      if (tensor.first_op <= other->last_op + kReuseDelay &&
          other->first_op <= tensor.last_op + kReuseDelay) {
        taken.emplace_back(other->offset, other->offset + size_of(*other));
      }
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + size_of(tensor) <= begin) break;
      offset = std::max(offset, end);
    }
    tensor.offset = offset;
    program_.arena_bytes = std::max(program_.arena_bytes, offset + size_of(tensor));
    placed.push_back(&tensor);
  }
}

}  // namespace quire::backend
