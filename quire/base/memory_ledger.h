// MemoryLedger: every large allocation by tag, so that the plan and the process can be compared.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace quire {

enum class MemoryTag { kWeights, kPackedCopies, kKvCache, kSwapSpace, kArena, kTokenizer, kOther };
inline constexpr int kNumMemoryTags = 7;

std::string_view memory_tag_name(MemoryTag tag);

/// Counts bytes by tag. Thread-safe. One per engine; passed to whatever allocates.
class MemoryLedger {
 public:
  void add(MemoryTag tag, int64_t bytes);
  void remove(MemoryTag tag, int64_t bytes);
  int64_t current(MemoryTag tag) const;
  int64_t peak(MemoryTag tag) const;

 private:
  struct Entry {
    std::atomic<int64_t> current{0};
    std::atomic<int64_t> peak{0};
  };
  std::array<Entry, kNumMemoryTags> entries_;
};

}  // namespace quire
