#include "quire/bench/step_vectors.h"

#include <algorithm>

#include "quire/base/check.h"

namespace quire::bench {

void StepVectors::add_row(std::span<const int32_t> tokens, int64_t context_before,
                          int64_t first_block) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t position = context_before + static_cast<int64_t>(i);
    tokens_.push_back(tokens[i]);
    positions_.push_back(static_cast<int32_t>(position));
    slots_.push_back(static_cast<int32_t>(first_block * block_tokens_ + position));
  }
  query_start_.push_back(static_cast<int32_t>(tokens_.size()));
  context_len_.push_back(static_cast<int32_t>(context_before) +
                         static_cast<int32_t>(tokens.size()));
  first_blocks_.push_back(static_cast<int32_t>(first_block));
}

void StepVectors::want_logits(int64_t count) {
  const auto total = static_cast<int64_t>(tokens_.size());
  QUIRE_CHECK(count <= total);
  for (int64_t i = total - count; i < total; ++i) logits_rows_.push_back(static_cast<int32_t>(i));
}

void StepVectors::clear() {
  *this = StepVectors(num_groups_, block_tokens_);
}

backend::StepMeta StepVectors::meta() {
  int32_t width = 0;
  for (const int32_t length : context_len_) {
    width = std::max(width, (length + block_tokens_ - 1) / std::max(block_tokens_, 1));
  }
  tables_.clear();
  for (const int32_t first : first_blocks_) {
    for (int32_t block = 0; block < width; ++block) tables_.push_back(first + block);
  }
  groups_.assign(static_cast<size_t>(num_groups_), {slots_, tables_, width});
  return {tokens_, positions_, query_start_, context_len_, logits_rows_, groups_};
}

std::vector<int32_t> some_tokens(int64_t count, int64_t vocab_size, int64_t salt) {
  std::vector<int32_t> tokens;
  tokens.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 7919 + salt * 104729) % vocab_size));
  }
  return tokens;
}

}  // namespace quire::bench
