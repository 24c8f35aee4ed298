// ThreadPool: compute workers that run one parallel region at a time, and never make it wait for a
// worker that the system has not given a processor.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "quire/base/turn_counter.h"

namespace quire {

/// Persistent workers; the thread that calls run() or lead() is worker 0. Between regions workers
/// spin for Options::spin and then sleep: an idle pool takes no processor time. One caller at a
/// time.
class ThreadPool {
 public:
  struct Options {
    int num_threads = 0;    // 0 = default_thread_count()
    std::vector<int> cpus;  // worker i is bound to cpus[i], worker 0 when it first calls lead();
                            // empty = the system places them
    std::chrono::microseconds spin{1500};
  };

  explicit ThreadPool(Options options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_workers() const { return num_workers_; }

  /// Calls fn(part, num_workers) once for every part in [0, num_workers) and returns when all have
  /// returned. Part 0 runs here, each other one on its worker, or here if that has not begun it by
  /// then: parts must not wait for each other. `fn` must not throw. Not reentrant.
  template <typename F>
  void run(F&& fn) {
    using Fn = std::remove_reference_t<F>;
    run_region([](void* context, int part, int n) { (*static_cast<Fn*>(context))(part, n); },
               const_cast<void*>(static_cast<const void*>(std::addressof(fn))), true);
  }

  /// Calls crew(worker) here, as worker 0, and on every other worker that comes before that
  /// returns. Returns when crew(0) has: workers may still be inside, or come out of it much later,
  /// so that `crew` must live until settle(), and may only change what crew(worker) is safe with.
  template <typename Crew>
  void lead(Crew& crew) {
    run_region([](void* context, int worker, int) { (*static_cast<Crew*>(context))(worker); },
               std::addressof(crew), false);
  }

  /// Waits until no worker is inside a region.
  void settle() const;

 private:
  using Region = void (*)(void* context, int worker, int num_workers);
  /// Region number * 2 + whether the worker is inside a region (maybe an older one). The number is
  /// that of the last region whose part was taken: by the worker, or by the caller in its stead.
  struct alignas(128) Seat {
    std::atomic<uint64_t> word{0};
  };

  void run_region(Region region, void* context, bool whole);
  void work(int worker);
  void bind(int worker) const;
  bool take_seat(int worker, uint64_t region, bool enter);
  void finish_part(uint64_t region);

  const Options options_;
  const int num_workers_;
  std::unique_ptr<Seat[]> seats_;
  // The region under way. Atomic, since a late worker may look while the next one is being set; it
  // then fails to take its seat.
  std::atomic<Region> region_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<bool> whole_{false};  // the caller waits for all parts
  bool running_ = false;
  std::thread::id bound_caller_;
  alignas(128) std::atomic<int> parts_left_{0};
  TurnCounter started_;   // number of the last region begun
  TurnCounter finished_;  // number of the last whole region that another than the caller ended
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace quire
