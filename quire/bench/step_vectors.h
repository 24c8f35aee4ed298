// StepVectors: a step put together by hand: sequences of any length whose KV lies in consecutive
// blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quire/backend/step_meta.h"

namespace quire::bench {

/// What benches and scoring run without a scheduler.
class StepVectors {
 public:
  /// For programs with `num_groups` cache groups of blocks of `block_tokens`.
  StepVectors(int32_t num_groups, int32_t block_tokens)
      : num_groups_(num_groups), block_tokens_(block_tokens) {}

  /// Appends a sequence's tokens, which follow `context_before` earlier ones. Its context lies in
  /// blocks first_block, first_block + 1, ... of every group.
  void add_row(std::span<const int32_t> tokens, int64_t context_before, int64_t first_block);
  /// Asks for the logits of the last `count` tokens appended.
  void want_logits(int64_t count);
  void clear();

  /// Valid until the next change.
  backend::StepMeta meta();

 private:
  int32_t num_groups_;
  int32_t block_tokens_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> query_start_ = {0};
  std::vector<int32_t> context_len_;
  std::vector<int32_t> slots_;
  std::vector<int32_t> first_blocks_;  // by row
  std::vector<int32_t> logits_rows_;
  std::vector<int32_t> tables_;
  std::vector<backend::GroupMeta> groups_;
};

/// `count` token ids of a vocabulary, not all alike; another `salt` gives others.
std::vector<int32_t> some_tokens(int64_t count, int64_t vocab_size, int64_t salt);

}  // namespace quire::bench
