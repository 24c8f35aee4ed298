// TokenCounts: which tokens a sequence holds and how often it generated each, for the penalties.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quire::runner {

/// A flat hash table from token to count. Its memory is kept from one sequence to the next.
class TokenCounts {
 public:
  struct Entry {
    int32_t token = -1;
    int32_t num_output = 0;  // times generated; 0 = stands in the prompt only
  };

  /// Forgets everything and makes room for `max_distinct` tokens, so that add() never allocates.
  void reset(int64_t max_distinct);
  void add_prompt(int32_t token) { slot(token); }
  void add_output(int32_t token) { ++entries_[slot(token)].num_output; }
  /// In the order of first appearance.
  std::span<const Entry> entries() const { return entries_; }

 private:
  /// Index into entries_, made when new.
  size_t slot(int32_t token);

  std::vector<Entry> entries_;
  std::vector<int32_t> table_;  // index into entries_, -1 = free; a power of two in size
};

}  // namespace quire::runner
