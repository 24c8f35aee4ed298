// ClaimBoard: which items every worker is computing, so that another can compute them again when
// the worker has lost its processor; whoever is first commits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "quire/backend/cpu/work_ranges.h"
#include "quire/base/check.h"

namespace quire::backend::cpu {

/// One claim a worker. The owner opens it, computes into memory of its own, and commits. A helper
/// that sees the claim open may compute the same items into its own memory, and commit: all results
/// are the same bits, one is kept. So the holder of an open claim can be stopped for any time, and
/// stops nobody; from commit() until the result is written it holds the phase up.
///
/// A phase does not end before its claims are committed. So what was read of the step (its plan,
/// its block tables) is right if the claim is open afterwards. Computing may go on beyond that: it
/// reads only memory that lives as long as the program does, and what it makes of it is dropped.
class ClaimBoard {
 public:
  /// A claim as another worker saw it.
  struct Sight {
    uint64_t state = 0;
    int64_t opened_ns = 0;
    ItemRange items;
  };

  explicit ClaimBoard(int num_workers)
      : slots_(std::make_unique<Slot[]>(static_cast<size_t>(num_workers))) {}

  /// The owner's; its claim before was committed, by whomever.
  void open(int worker, uint64_t phase, int64_t now_ns, const ItemRange& items) {
    Slot& slot = at(worker);
    const uint64_t closed = slot.state.load(std::memory_order_relaxed);
    QUIRE_CHECK(closed % 2 == 0);
    std::atomic_thread_fence(std::memory_order_release);
    slot.phase.store(phase, std::memory_order_relaxed);
    slot.opened_ns.store(now_ns, std::memory_order_relaxed);
    slot.begin.store(items.begin, std::memory_order_relaxed);
    slot.end.store(items.end, std::memory_order_relaxed);
    slot.state.store(closed + 3, std::memory_order_release);
  }

  /// The owner's: true when the result is the owner's to write, false when a helper was faster and
  /// the phase may be long over.
  bool commit(int worker) {
    uint64_t state = at(worker).state.load(std::memory_order_relaxed);
    return state % 2 == 1 && close(worker, state);
  }
  /// A helper's, likewise.
  bool commit(int worker, const Sight& sight) { return close(worker, sight.state); }

  /// True when `worker` has an open claim of `phase`; then `sight` is it.
  bool look(int worker, uint64_t phase, Sight& sight) const {
    const Slot& slot = at(worker);
    sight.state = slot.state.load(std::memory_order_acquire);
    if (sight.state % 2 == 0 || slot.phase.load(std::memory_order_relaxed) != phase) return false;
    sight.opened_ns = slot.opened_ns.load(std::memory_order_relaxed);
    sight.items.begin = slot.begin.load(std::memory_order_relaxed);
    sight.items.end = slot.end.load(std::memory_order_relaxed);
    return still_open(worker, sight);
  }
  bool still_open(int worker, const Sight& sight) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return at(worker).state.load(std::memory_order_relaxed) == sight.state;
  }

 private:
  struct alignas(128) Slot {
    std::atomic<uint64_t> state{0};  // 2 * claims so far + whether the last one is open
    std::atomic<uint64_t> phase{0};
    std::atomic<int64_t> opened_ns{0};
    std::atomic<int64_t> begin{0};
    std::atomic<int64_t> end{0};
  };

  bool close(int worker, uint64_t open_state) {
    return at(worker).state.compare_exchange_strong(open_state, open_state - 1,
                                                    std::memory_order_acq_rel);
  }
  Slot& at(int worker) { return slots_[static_cast<size_t>(worker)]; }
  const Slot& at(int worker) const { return slots_[static_cast<size_t>(worker)]; }

  std::unique_ptr<Slot[]> slots_;
};

}  // namespace quire::backend::cpu
