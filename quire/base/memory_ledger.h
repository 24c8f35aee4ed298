// MemoryLedger: every large allocation by tag, so that the plan and the process can be compared.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace quire {

enum class MemoryTag {
  kWeights,        // packed weights and vectors
  kPackedCopies,   // weights held a second time in another layout
  kKvCache,        // reserved; pages are taken as blocks are first written
  kSwapSpace,      // KV blocks of preempted sequences
  kArena,          // activations of one step, rotary tables, attention's partial results
  kWorkerScratch,  // what a compute thread keeps to itself
  kTokenizer,
  kHttp,  // connections, request bodies, answers not yet sent
  kOther,
};
inline constexpr int kNumMemoryTags = 9;

std::string_view memory_tag_name(MemoryTag tag);

/// Bytes of one tag. `allocated` and `freed` only grow; current = allocated - freed.
struct MemoryCount {
  int64_t current = 0;
  int64_t peak = 0;  // largest `current` since the start, or since reset_peaks()
  int64_t allocated = 0;
  int64_t freed = 0;
};

/// The ledger at one moment. Under concurrent changes each number is one that the ledger had, but
/// not all at the same instant.
struct MemorySnapshot {
  std::array<MemoryCount, kNumMemoryTags> tags{};
  MemoryCount total{};  // its peak is that of the sum, which the tags' peaks need not add up to

  const MemoryCount& operator[](MemoryTag tag) const { return tags[static_cast<size_t>(tag)]; }
};

/// Counts bytes by tag. Thread-safe and lock-free. One per engine; passed to whatever allocates.
class MemoryLedger {
 public:
  void add(MemoryTag tag, int64_t bytes);
  void remove(MemoryTag tag, int64_t bytes);
  int64_t current(MemoryTag tag) const;
  int64_t peak(MemoryTag tag) const;
  MemorySnapshot snapshot() const;
  /// Peaks begin anew at what is current, as the kernel's high-water mark does.
  void reset_peaks();

 private:
  class Entry {
   public:
    void add(int64_t bytes);
    void remove(int64_t bytes);
    MemoryCount count() const;
    void reset_peak();

   private:
    std::atomic<int64_t> current_{0};
    std::atomic<int64_t> peak_{0};
    std::atomic<int64_t> allocated_{0};
    std::atomic<int64_t> freed_{0};
  };

  Entry& entry(MemoryTag tag) { return entries_[static_cast<size_t>(tag)]; }

  std::array<Entry, kNumMemoryTags> entries_;
  Entry total_;
};

/// One holder's bytes in a ledger, which may be null: for memory that is not a HugeBuffer's.
/// Move-only; taken out again when it dies. The ledger must outlive it.
class LedgerEntry {
 public:
  LedgerEntry() = default;
  LedgerEntry(MemoryLedger* ledger, MemoryTag tag, int64_t bytes = 0);
  ~LedgerEntry();
  LedgerEntry(LedgerEntry&& other) noexcept;
  LedgerEntry& operator=(LedgerEntry&& other) noexcept;
  LedgerEntry(const LedgerEntry&) = delete;
  LedgerEntry& operator=(const LedgerEntry&) = delete;

  int64_t bytes() const { return bytes_; }
  /// Enters the difference.
  void resize(int64_t bytes);

 private:
  MemoryLedger* ledger_ = nullptr;
  MemoryTag tag_ = MemoryTag::kOther;
  int64_t bytes_ = 0;
};

}  // namespace quire
