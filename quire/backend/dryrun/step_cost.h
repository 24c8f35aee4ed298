// step_cost: the bytes moved and operations done by every line of a program in one step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "quire/backend/program.h"

namespace quire::backend::dryrun {

/// One sequence's share of a step: `new_tokens` tokens, the last of which is number context_len - 1
/// of its context.
struct RowShape {
  int64_t new_tokens = 0;
  int64_t context_len = 0;
};

/// What a step binds to a program's symbols, as far as its cost depends on it.
struct StepShape {
  std::vector<RowShape> rows;
  int64_t num_logits = 0;  // R

  int64_t num_tokens() const;  // T
};

/// One line's cost. Bytes are what the line must touch once, whatever caches do: no re-reads.
struct OpCost {
  std::string name;
  OpKind kind = OpKind::kAdd;
  int64_t operations = 0;    // a multiply and an add count as two
  int64_t weight_bytes = 0;  // packed codes and scales, bias and norm vectors
  int64_t act_bytes = 0;     // activation rows read and written
  int64_t kv_bytes = 0;      // KV pages read or slots written

  int64_t bytes() const { return weight_bytes + act_bytes + kv_bytes; }
};

/// One entry per operation, in order.
///   matmul:    2 * rows * in * out operations; the whole weight is read once
///   embed:     each token's row of the table
///   attention: 4 * heads * head_dim operations for each (query, visible position) pair; whole
///              16-token pages of what a sequence's queries see
std::vector<OpCost> step_cost(const Program& program, const StepShape& step);

/// Sums over all lines; name is "total".
OpCost total_cost(std::span<const OpCost> costs);

}  // namespace quire::backend::dryrun
