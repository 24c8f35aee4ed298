#include "quire/backend/dryrun/step_cost.h"

#include <algorithm>

namespace quire::backend::dryrun {
namespace {

constexpr int64_t kPageTokens = 16;

/// Counts one step, operation by operation.
class StepCounter {
 public:
  StepCounter(const Program& program, const StepShape& step) : program_(program), step_(step) {}

  OpCost count(const Op& op) const {
    OpCost cost{.name = op.name, .kind = op.kind};
    switch (op.kind) {
      case OpKind::kEmbed:
        count_embed(op, cost);
        break;
      case OpKind::kMatmul:
        count_matmul(op, cost);
        break;
      case OpKind::kAttention:
        count_attention(op, cost);
        break;
      case OpKind::kStoreKv:
        count_store_kv(op, cost);
        break;
      case OpKind::kGatherRows:
        cost.act_bytes = 2 * tensor_bytes(op.out);
        break;
      default:
        count_elementwise(op, cost);
        break;
    }
    return cost;
  }

 private:
  const TensorDecl& tensor(int32_t index) const {
    return program_.tensors[static_cast<size_t>(index)];
  }
  int64_t num_rows(int32_t index) const {
    return tensor(index).rows == Rows::kTokens ? step_.num_tokens() : step_.num_logits;
  }
  int64_t tensor_bytes(int32_t index) const {
    return index < 0 ? 0 : tensor(index).row_bytes * num_rows(index);
  }
  int64_t vector_bytes(const Op& op) const {
    if (op.vector < 0) return 0;
    const auto& vector = program_.vectors[static_cast<size_t>(op.vector)];
    return static_cast<int64_t>(vector.size() * sizeof(float));
  }
  const CacheGroupSpec& group_of(const Op& op) const {
    return program_.cache_groups[static_cast<size_t>(op.cache_group)];
  }

  void count_embed(const Op& op, OpCost& cost) const {
    const PackedWeight& table = *program_.weights[static_cast<size_t>(op.weight)];
    const int64_t row_bytes = table.bytes() / (num_panels(table.spec.out) * kPanel);
    cost.weight_bytes = num_rows(op.out) * row_bytes;
    cost.act_bytes = tensor_bytes(op.out);
    if (table.spec.layout != Layout::kDense) {
      cost.operations = 2 * num_rows(op.out) * table.spec.in;
    }
  }

  void count_matmul(const Op& op, OpCost& cost) const {
    const PackedWeight& weight = *program_.weights[static_cast<size_t>(op.weight)];
    if (num_rows(op.out) == 0) return;
    cost.operations = 2 * num_rows(op.out) * weight.spec.in * weight.spec.out;
    cost.weight_bytes = weight.bytes() + vector_bytes(op);
    cost.act_bytes = tensor_bytes(op.in[0]) + tensor_bytes(op.out);
  }

  void count_attention(const Op& op, OpCost& cost) const {
    const CacheGroupSpec& group = group_of(op);
    int64_t pairs = 0;
    int64_t pages = 0;
    for (const RowShape& row : step_.rows) {
      const int64_t window = op.attention.window;
      for (int64_t i = 0; i < row.new_tokens; ++i) {
        const int64_t visible = row.context_len - row.new_tokens + i + 1;
        pairs += window > 0 ? std::min(visible, window) : visible;
      }
      if (row.new_tokens == 0) continue;
      // The first query looks back furthest.
      const int64_t first = row.context_len - row.new_tokens;
      const int64_t begin = window > 0 ? std::max<int64_t>(0, first + 1 - window) : 0;
      pages += (row.context_len + kPageTokens - 1) / kPageTokens - begin / kPageTokens;
    }
    cost.operations = 4 * pairs * op.attention.num_heads * op.attention.head_dim;
    cost.kv_bytes = pages * group.num_kv_heads * group.page_bytes();
    cost.act_bytes = tensor_bytes(op.in[0]) + tensor_bytes(op.out);
  }

  void count_store_kv(const Op& op, OpCost& cost) const {
    const CacheGroupSpec& group = group_of(op);
    cost.act_bytes = tensor_bytes(op.in[0]) + tensor_bytes(op.in[1]);
    cost.kv_bytes = num_rows(op.in[0]) * group.num_kv_heads * group.page_bytes() / kPageTokens;
  }

  /// Norms, rotation, preparation, activation, addition: a few operations an element.
  void count_elementwise(const Op& op, OpCost& cost) const {
    cost.weight_bytes = vector_bytes(op);
    cost.act_bytes = tensor_bytes(op.in[0]) + tensor_bytes(op.in[1]) + tensor_bytes(op.out);
    cost.operations = operations_per_element(op.kind) * num_rows(op.out) * tensor(op.out).cols;
  }

  static int64_t operations_per_element(OpKind kind) {
    switch (kind) {
      case OpKind::kRmsNorm:
        return 4;  // square, add, scale, weight
      case OpKind::kRope:
        return 3;  // two products and a sum
      case OpKind::kPrepare:
        return 2;  // scale and round
      case OpKind::kGatedAct:
        return 5;  // exp, add, divide, two products
      default:
        return 1;
    }
  }

  const Program& program_;
  const StepShape& step_;
};

}  // namespace

int64_t StepShape::num_tokens() const {
  int64_t sum = 0;
  for (const RowShape& row : rows) sum += row.new_tokens;
  return sum;
}

std::vector<OpCost> step_cost(const Program& program, const StepShape& step) {
  const StepCounter counter(program, step);
  std::vector<OpCost> costs;
  costs.reserve(program.ops.size());
  for (const Op& op : program.ops) costs.push_back(counter.count(op));
  return costs;
}

OpCost total_cost(std::span<const OpCost> costs) {
  OpCost total{.name = "total"};
  for (const OpCost& cost : costs) {
    total.operations += cost.operations;
    total.weight_bytes += cost.weight_bytes;
    total.act_bytes += cost.act_bytes;
    total.kv_bytes += cost.kv_bytes;
  }
  return total;
}

}  // namespace quire::backend::dryrun
