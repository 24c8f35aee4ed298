#include "quire/base/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "quire/base/check.h"
#include "quire/base/cpu_count.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

// Spinning longer than this for a peer loses more where the peer isn't running (the system favours
// threads that sleep, and gives their processor to the peer) than a wake-up costs where it is.
constexpr std::chrono::microseconds kBarrierSpin{30};
constexpr int kPausesPerClock = 64;  // reading the clock costs about as much as 20 pauses

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

/// Returns once `word` differs from `old`; acquires what was written before it changed. Pairs with
/// publish(): a sleeper first counts itself, then looks once more; the publisher first changes the
/// word, then looks for sleepers (all sequentially consistent, so one of them sees the other).
void wait_for_change(std::atomic<uint32_t>& word, uint32_t old, std::atomic<uint32_t>& sleepers,
                     std::chrono::microseconds spin) {
  for (int i = 0; i < kPausesPerClock; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  const Clock::time_point start = Clock::now();
  while (true) {
    for (int i = 0; i < kPausesPerClock; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      pause();
    }
    if (Clock::now() - start >= spin) break;
  }
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (word.load(std::memory_order_seq_cst) == old) futex_wait(word, old);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void publish(std::atomic<uint32_t>& word, uint32_t value, std::atomic<uint32_t>& sleepers) {
  word.store(value, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(word);
}

}  // namespace

void SpinBarrier::wait() {
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    publish(generation_, generation + 1, sleepers_);
  } else {
    wait_for_change(generation_, generation, sleepers_, kBarrierSpin);
  }
}

ThreadPool::ThreadPool(Options options)
    : options_(std::move(options)),
      num_workers_(options_.num_threads > 0 ? options_.num_threads : default_thread_count()),
      barrier_(num_workers_) {
  for (int worker = 1; worker < num_workers_; ++worker) {
    threads_.emplace_back([this, worker] { work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  publish(generation_, generation_.load(std::memory_order_relaxed) + 1, sleepers_);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_region(Region region, void* context) {
  if (!caller_bound_) {
    bind(0);
    caller_bound_ = true;
  }
  if (num_workers_ == 1) {
    region(context, 0, 1);
    return;
  }
  QUIRE_CHECK_MSG(region_ == nullptr, "ThreadPool::run inside a region");
  region_ = region;
  context_ = context;
  publish(generation_, generation_.load(std::memory_order_relaxed) + 1, sleepers_);
  region(context, 0, num_workers_);
  barrier_.wait();
  region_ = nullptr;
}

void ThreadPool::work(int worker) {
  bind(worker);
  for (uint32_t seen = 0;; ++seen) {
    wait_for_change(generation_, seen, sleepers_, options_.spin);
    if (stopping_.load(std::memory_order_relaxed)) return;
    region_(context_, worker, num_workers_);
    barrier_.wait();
  }
}

void ThreadPool::bind(int worker) const {
  if (static_cast<size_t>(worker) >= options_.cpus.size()) return;
  const int cpu = options_.cpus[static_cast<size_t>(worker)];
  cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpu) + 1);
  const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpu) + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
  pthread_setaffinity_np(pthread_self(), bytes, set);  // a processor that went away: run unbound
  CPU_FREE(set);
}

}  // namespace quire
