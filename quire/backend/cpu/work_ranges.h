// WorkRanges: a phase's items in one contiguous range a worker; who is done takes from the others'
// tails.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "quire/base/check.h"

namespace quire::backend::cpu {

/// Items [begin, end).
struct ItemRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Hands out the items of phases 1, 2, 3, ... (one after another, a barrier between them). Every
/// worker asks with the same phase number and the same static cut. No phase needs preparing: a
/// range that still belongs to an older phase is fresh, so that even a worker that the system has
/// not scheduled yet can be helped.
class WorkRanges {
 public:
  static constexpr int64_t kMaxItems = (int64_t{1} << 24) - 1;

  explicit WorkRanges(int num_workers) : words_(static_cast<size_t>(num_workers)) {}

  /// The next items for `worker`, at least `grain` of them where there are; empty when the phase
  /// has none left. start_of(w) is the first item of worker w's static range, start_of(num_workers)
  /// the number of items.
  template <typename StartOf>
  ItemRange take(int worker, uint32_t phase, int64_t grain, const StartOf& start_of) {
    const int num_workers = static_cast<int>(words_.size());
    ItemRange range = take_from(worker, phase, grain, false, start_of);
    const int victims = std::min(num_workers - 1, kMaxVictims);
    for (int i = 1; i <= victims && range.begin == range.end; ++i) {
      const int victim = (worker + i) % num_workers;
      wait_for_start(victim, phase);
      range = take_from(victim, phase, grain, true, start_of);
    }
    return range;
  }

 private:
  // A word: phase (16 bits), next item (24), end (24). Only neighbouring phases ever meet, so 16
  // bits are plenty.
  struct alignas(128) Word {
    std::atomic<uint64_t> bits{0};
  };
  static constexpr int kMaxVictims = 4;
  static constexpr int kStartPauses = 64;  // a few microseconds

  static uint64_t pack(uint32_t phase, int64_t next, int64_t end) {
    return uint64_t{phase & 0xffff} << 48 | static_cast<uint64_t>(next) << 24 |
           static_cast<uint64_t>(end);
  }
  static uint32_t phase_of(uint64_t bits) { return static_cast<uint32_t>(bits >> 48); }

  /// Gives a worker that runs a moment to begin its own range: its data may be in its cache.
  void wait_for_start(int victim, uint32_t phase) {
    const std::atomic<uint64_t>& bits = words_[static_cast<size_t>(victim)].bits;
    for (int i = 0; i < kStartPauses; ++i) {
      if (phase_of(bits.load(std::memory_order_relaxed)) == (phase & 0xffff)) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }

  // Relaxed order is enough: items carry no data, barriers order what they stand for.
  template <typename StartOf>
  ItemRange take_from(int owner, uint32_t phase, int64_t grain, bool from_tail,
                      const StartOf& start_of) {
    std::atomic<uint64_t>& word = words_[static_cast<size_t>(owner)].bits;
    uint64_t bits = word.load(std::memory_order_relaxed);
    while (true) {
      int64_t next = static_cast<int64_t>(bits >> 24 & 0xffffff);
      int64_t end = static_cast<int64_t>(bits & 0xffffff);
      const bool fresh = phase_of(bits) != (phase & 0xffff);
      if (fresh) {
        next = start_of(owner);
        end = start_of(owner + 1);
      }
      if (next == end && (from_tail || !fresh)) return {};
      const int64_t left = end - next;
      // The owner takes most of what is left, so that few calls cover a quiet phase.
      const int64_t count = std::min(left, std::max(grain, from_tail ? left / 2 : left * 3 / 4));
      const ItemRange range =
          from_tail ? ItemRange{end - count, end} : ItemRange{next, next + count};
      const uint64_t after =
          from_tail ? pack(phase, next, end - count) : pack(phase, next + count, end);
      if (word.compare_exchange_weak(bits, after, std::memory_order_relaxed)) return range;
    }
  }

  std::vector<Word> words_;
};

/// The static cut of `items` equal items over `num_workers`; small phases start at worker 0.
inline int64_t even_start(int64_t items, int num_workers, int worker) {
  return (items * worker + num_workers - 1) / num_workers;
}

}  // namespace quire::backend::cpu
