// WorkRanges: a phase's items in one contiguous range a worker; who is done takes from the others'
// tails.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "quire/base/turn_counter.h"

namespace quire::backend::cpu {

/// Items [begin, end).
struct ItemRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin == end; }
  int64_t size() const { return end - begin; }
};

/// How much of what is left a worker takes at once, in items.
struct Portion {
  int64_t least = 1;
  int64_t most = INT64_MAX;
};

/// Hands out the items of phases 1, 2, 3, ... (a later one begins when all items of the one before
/// are done). Every worker asks with the same phase number and the same static cut. No phase needs
/// preparing: a range that still belongs to an older phase is fresh, so that even a worker that the
/// system has not scheduled yet can be helped; who asks for an older phase gets nothing.
class WorkRanges {
 public:
  static constexpr int kItemBits = 18;
  static constexpr int64_t kMaxItems = (int64_t{1} << kItemBits) - 1;

  explicit WorkRanges(int num_workers) : words_(static_cast<size_t>(num_workers)) {}

  /// The next items for `worker`; empty when the phase has none left. start_of(w) is the first item
  /// of worker w's static range, start_of(num_workers) the number of items. If the phase may have
  /// ended while start_of was asked, only a look at the phase afterwards tells whether the items
  /// are real.
  template <typename StartOf>
  ItemRange take(int worker, uint64_t phase, const Portion& portion, const StartOf& start_of) {
    const int num_workers = static_cast<int>(words_.size());
    ItemRange range = take_from(worker, phase, portion, false, start_of);
    const int victims = std::min(num_workers - 1, kMaxVictims);
    for (int i = 1; i <= victims && range.empty(); ++i) {
      const int victim = (worker + i) % num_workers;
      wait_for_start(victim, phase);
      range = take_from(victim, phase, portion, true, start_of);
    }
    return range;
  }

  /// Marks all ranges as belonging to `phase`, and empty. Once in 2^26 phases, so that none looks
  /// newer than it is.
  void reset(uint64_t phase) {
    for (Word& word : words_) word.bits.store(pack(phase, 0, 0), std::memory_order_relaxed);
  }

 private:
  // A word: phase (28 bits), next item (18), end (18).
  struct alignas(128) Word {
    std::atomic<uint64_t> bits{0};
  };
  static constexpr uint64_t kItemMask = (uint64_t{1} << kItemBits) - 1;
  static constexpr int kPhaseBits = 64 - 2 * kItemBits;
  static constexpr int kMaxVictims = 4;
  static constexpr int kStartPauses = 64;  // a few microseconds

  static uint64_t pack(uint64_t phase, int64_t next, int64_t end) {
    return phase << (2 * kItemBits) | static_cast<uint64_t>(next) << kItemBits |
           static_cast<uint64_t>(end);
  }
  /// How many phases the word lies behind `phase`; negative when it is ahead.
  static int64_t age(uint64_t bits, uint64_t phase) {
    const uint64_t difference = (phase - (bits >> (2 * kItemBits))) << (2 * kItemBits);
    return static_cast<int64_t>(difference) >> (2 * kItemBits);
  }

  /// Gives a worker that runs a moment to begin its own range: its data may be in its cache.
  void wait_for_start(int victim, uint64_t phase) {
    const std::atomic<uint64_t>& bits = words_[static_cast<size_t>(victim)].bits;
    for (int i = 0; i < kStartPauses; ++i) {
      if (age(bits.load(std::memory_order_relaxed), phase) <= 0) return;
      pause_cpu();
    }
  }

  // Items carry no data, the phases order what they stand for; but the caller's look at the phase
  // must come after the exchange.
  template <typename StartOf>
  ItemRange take_from(int owner, uint64_t phase, const Portion& portion, bool from_tail,
                      const StartOf& start_of) {
    std::atomic<uint64_t>& word = words_[static_cast<size_t>(owner)].bits;
    uint64_t bits = word.load(std::memory_order_relaxed);
    while (true) {
      const int64_t behind = age(bits, phase);
      if (behind < 0) return {};
      const bool fresh = behind > 0;
      const int64_t next =
          fresh ? start_of(owner) : static_cast<int64_t>(bits >> kItemBits & kItemMask);
      const int64_t end = fresh ? start_of(owner + 1) : static_cast<int64_t>(bits & kItemMask);
      if (next >= end && (from_tail || !fresh)) return {};
      const int64_t left = end - next;
      // The owner takes most of what is left, so that few calls cover a quiet phase.
      const int64_t share = from_tail ? left / 2 : left * 3 / 4;
      const int64_t count = std::min({left, std::max(portion.least, share), portion.most});
      const ItemRange range =
          from_tail ? ItemRange{end - count, end} : ItemRange{next, next + count};
      const uint64_t after =
          from_tail ? pack(phase, next, end - count) : pack(phase, next + count, end);
      if (word.compare_exchange_weak(bits, after, std::memory_order_seq_cst)) return range;
    }
  }

  std::vector<Word> words_;
};

/// The static cut of `items` equal items over `num_workers`; small phases start at worker 0.
inline int64_t even_start(int64_t items, int num_workers, int worker) {
  return (items * worker + num_workers - 1) / num_workers;
}

}  // namespace quire::backend::cpu
