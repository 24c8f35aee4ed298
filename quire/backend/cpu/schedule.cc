#include "quire/backend/cpu/schedule.h"

#include <algorithm>

#include <fmt/format.h>

namespace quire::backend::cpu {
namespace {

/// Arena bytes an operation touches. `by_row`: for its rows [a, b) only the tensor's rows [a, b).
struct Access {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t row_bytes = 0;
  bool writes = false;
  bool by_row = true;
};

Phase::Kind phase_kind(OpKind kind) {
  if (kind == OpKind::kMatmul) return Phase::Kind::kMatmuls;
  if (kind == OpKind::kAttention) return Phase::Kind::kAttention;
  return Phase::Kind::kRows;
}

const TensorDecl& tensor(const Program& program, int32_t index) {
  return program.tensors[static_cast<size_t>(index)];
}

/// The row symbol an operation's work is counted in: its result's, or its input's where it has
/// none.
Rows rows_of(const Program& program, const Op& op) {
  return tensor(program, op.out >= 0 ? op.out : op.in[0]).rows;
}

void append_accesses(const Program& program, const Op& op, std::vector<Access>& accesses) {
  const auto append = [&](int32_t index, bool writes, bool by_row) {
    if (index < 0) return;
    const TensorDecl& t = tensor(program, index);
    const int64_t bytes = t.row_bytes * program.max_rows(t.rows);
    accesses.push_back({t.offset, t.offset + bytes, t.row_bytes, writes, by_row});
  };
  // A gather reads any row; matmuls and attention are not cut by rows alone.
  const bool by_row = phase_kind(op.kind) == Phase::Kind::kRows && op.kind != OpKind::kGatherRows;
  for (const int32_t input : op.in) append(input, false, by_row);
  append(op.out, true, phase_kind(op.kind) == Phase::Kind::kRows);
}

/// True when two workers, each on its own rows, could meet in a byte that one of them writes.
bool conflict(const Access& a, const Access& b) {
  if (!a.writes && !b.writes) return false;
  if (a.end <= b.begin || b.end <= a.begin) return false;
  const bool same_rows = a.begin == b.begin && a.row_bytes == b.row_bytes;
  return !(a.by_row && b.by_row && same_rows);
}

}  // namespace

// Attention is the only reader of KV and a phase of its own, and store_kv writes one layer's pages:
// phase limits alone keep KV in order.
std::vector<Phase> make_schedule(const Program& program) {
  std::vector<Phase> phases;
  std::vector<Access> in_phase;
  std::vector<Access> in_op;
  for (int32_t index = 0; index < static_cast<int32_t>(program.ops.size()); ++index) {
    const Op& op = program.ops[static_cast<size_t>(index)];
    const Phase::Kind kind = phase_kind(op.kind);
    const Rows rows = rows_of(program, op);
    in_op.clear();
    append_accesses(program, op, in_op);
    bool joins = !phases.empty() && phases.back().kind == kind && phases.back().rows == rows &&
                 kind != Phase::Kind::kAttention;
    for (const Access& a : in_op) {
      joins = joins && std::none_of(in_phase.begin(), in_phase.end(),
                                    [&](const Access& b) { return conflict(a, b); });
    }
    if (!joins) {
      phases.push_back({kind, rows, index, index});
      in_phase.clear();
    }
    phases.back().last_op = index + 1;
    in_phase.insert(in_phase.end(), in_op.begin(), in_op.end());
  }
  return phases;
}

std::string phase_label(const Program& program, const Phase& phase) {
  std::string label;
  for (int32_t op = phase.first_op; op < phase.last_op;) {
    const OpKind kind = program.ops[static_cast<size_t>(op)].kind;
    int32_t end = op;
    while (end < phase.last_op && program.ops[static_cast<size_t>(end)].kind == kind) ++end;
    if (!label.empty()) label += " + ";
    if (end - op > 1) label += fmt::format("{} ", end - op);
    label += op_kind_name(kind);
    op = end;
  }
  return label;
}

}  // namespace quire::backend::cpu
