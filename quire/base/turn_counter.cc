#include "quire/base/turn_counter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPausesPerClock = 64;  // reading the clock costs about as much as 20 pauses

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

}  // namespace

bool TurnCounter::spin(uint64_t old, std::chrono::microseconds spin) const {
  const auto pauses = [&] {
    for (int i = 0; i < kPausesPerClock; ++i) {
      if (value_.load(std::memory_order_acquire) != old) return true;
      pause_cpu();
    }
    return false;
  };
  if (pauses()) return true;
  const Clock::time_point start = Clock::now();
  while (true) {
    if (pauses()) return true;
    if (Clock::now() - start >= spin) return false;
  }
}

// A sleeper counts itself, reads the bell, and looks once more; who sets the number looks for
// sleepers afterwards and rings. All sequentially consistent, so that one sees the other; a bell
// rung after it was read ends the sleep at once.
void TurnCounter::sleep(uint64_t old) {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (true) {
    const uint32_t bell = bell_.load(std::memory_order_seq_cst);
    if (value_.load(std::memory_order_seq_cst) != old) break;
    futex_wait(bell_, bell);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

uint64_t TurnCounter::wait(uint64_t old, std::chrono::microseconds spin_for) {
  if (!spin(old, spin_for)) sleep(old);
  return value();
}

void TurnCounter::set(uint64_t value) {
  value_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  bell_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(bell_);
}

}  // namespace quire
