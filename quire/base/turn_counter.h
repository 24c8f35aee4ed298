// TurnCounter: a number that only grows, and threads that wait for the next one: spinning, then
// asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace quire {

class TurnCounter {
 public:
  explicit TurnCounter(uint64_t start = 0) : value_(start) {}

  /// What was written before set(value()) is visible.
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  /// value() == `value`, seen no earlier than the caller's last sequentially consistent write.
  bool is(uint64_t value) const { return value_.load(std::memory_order_seq_cst) == value; }
  /// `value` is larger than any before. Wakes who sleeps.
  void set(uint64_t value);

  /// Spins until the number differs from `old`, about `spin` long at most; true when it does.
  bool spin(uint64_t old, std::chrono::microseconds spin) const;
  /// Sleeps until the number differs from `old`.
  void sleep(uint64_t old);
  /// Both, one after the other. Returns the number.
  uint64_t wait(uint64_t old, std::chrono::microseconds spin_for);

 private:
  alignas(128) std::atomic<uint64_t> value_;
  alignas(128) std::atomic<uint32_t> sleepers_{0};
  std::atomic<uint32_t> bell_{0};  // what sleepers sleep on: a futex has 32 bits
};

/// A moment for the other hardware thread of this core.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace quire
