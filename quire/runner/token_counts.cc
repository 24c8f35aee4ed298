#include "quire/runner/token_counts.h"

#include <bit>

#include "quire/base/check.h"

namespace quire::runner {

void TokenCounts::reset(int64_t max_distinct) {
  const auto room = static_cast<size_t>(max_distinct);
  entries_.clear();
  entries_.reserve(room);
  table_.assign(std::bit_ceil(2 * room + 1), -1);
}

size_t TokenCounts::slot(int32_t token) {
  const size_t mask = table_.size() - 1;
  size_t at = (static_cast<uint32_t>(token) * uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
  while (table_[at] >= 0) {
    const auto index = static_cast<size_t>(table_[at]);
    if (entries_[index].token == token) return index;
    at = (at + 1) & mask;
  }
  QUIRE_CHECK(2 * entries_.size() < table_.size());
  table_[at] = static_cast<int32_t>(entries_.size());
  entries_.push_back({.token = token});
  return entries_.size() - 1;
}

}  // namespace quire::runner
