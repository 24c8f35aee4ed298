// StepMeta: what one step binds to a Program's symbols: tokens, positions, KV slots and block
// tables.
#pragma once

#include <cstdint>
#include <span>

namespace quire::backend {

/// One cache group's view of a step.
struct GroupMeta {
  std::span<const int32_t>
      slots;  // [T] KV slot (block * block_tokens + offset) each token writes; -1 = none
  std::span<const int32_t>
      block_tables;  // [rows][table_width] block ids of each row's context, in order
  int32_t table_width = 0;
};

/// A row is one sequence's share of the step: tokens [query_start[i], query_start[i+1]) at
/// consecutive positions, the last of which is context_len[i] - 1.
struct StepMeta {
  std::span<const int32_t> token_ids;    // [T]
  std::span<const int32_t> positions;    // [T]
  std::span<const int32_t> query_start;  // [rows + 1]
  std::span<const int32_t> context_len;  // [rows] tokens in the KV once this step's are stored
  std::span<const int32_t> logits_rows;  // [R] index into the T tokens
  std::span<const GroupMeta> groups;     // one per CacheGroupSpec

  int64_t num_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t num_logits() const { return static_cast<int64_t>(logits_rows.size()); }
  int64_t num_rows() const { return static_cast<int64_t>(context_len.size()); }
};

}  // namespace quire::backend
