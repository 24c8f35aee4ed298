// ThreadPool: compute workers that run one parallel region at a time, with barriers inside it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace quire {

/// Where a fixed number of threads meet: wait() returns once all have called it. Reusable at once.
/// Waiters spin briefly, then sleep, so that a peer that isn't running can have the processor.
class SpinBarrier {
 public:
  explicit SpinBarrier(int num_threads) : num_threads_(static_cast<uint32_t>(num_threads)) {}
  void wait();

 private:
  uint32_t num_threads_;
  alignas(128) std::atomic<uint32_t> arrived_{0};
  alignas(128) std::atomic<uint32_t> generation_{0};
  alignas(128) std::atomic<uint32_t> sleepers_{0};
};

/// Persistent workers; the thread that calls run() is worker 0. Between regions workers spin for
/// Options::spin and then sleep: an idle pool takes no processor time. One caller at a time.
class ThreadPool {
 public:
  struct Options {
    int num_threads = 0;    // 0 = default_thread_count()
    std::vector<int> cpus;  // worker i is bound to cpus[i], worker 0 when it first calls run();
                            // empty = the system places them
    std::chrono::microseconds spin{1500};
  };

  explicit ThreadPool(Options options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_workers() const { return num_workers_; }

  /// One parallel region: calls fn(worker, num_workers) on every worker at once and returns when
  /// all have returned. `fn` must not throw. Not reentrant.
  template <typename F>
  void run(F&& fn) {
    using Fn = std::remove_reference_t<F>;
    run_region([](void* context, int worker, int n) { (*static_cast<Fn*>(context))(worker, n); },
               const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

  /// Inside a region: waits until every worker has called it. What they wrote before is visible
  /// after.
  void barrier() { barrier_.wait(); }

 private:
  using Region = void (*)(void* context, int worker, int num_workers);

  void run_region(Region region, void* context);
  void work(int worker);
  void bind(int worker) const;

  const Options options_;
  const int num_workers_;
  SpinBarrier barrier_;
  Region region_ = nullptr;
  void* context_ = nullptr;
  bool caller_bound_ = false;
  alignas(128) std::atomic<uint32_t> generation_{0};
  alignas(128) std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace quire
