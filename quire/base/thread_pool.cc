#include "quire/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <utility>

#include "quire/base/check.h"
#include "quire/base/cpu_count.h"

namespace quire {
namespace {

// Spinning longer than this for a peer loses more where the peer isn't running (the system favours
// threads that sleep, and gives their processor to the peer) than a wake-up costs where it is.
constexpr std::chrono::microseconds kPeerSpin{30};

}  // namespace

ThreadPool::ThreadPool(Options options)
    : options_(std::move(options)),
      num_workers_(options_.num_threads > 0 ? options_.num_threads : default_thread_count()),
      seats_(std::make_unique<Seat[]>(static_cast<size_t>(num_workers_))) {
  for (int worker = 1; worker < num_workers_; ++worker) {
    threads_.emplace_back([this, worker] { work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  started_.set(started_.value() + 1);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_region(Region region, void* context, bool whole) {
  QUIRE_CHECK_MSG(!running_, "a ThreadPool region inside another");
  running_ = true;
  // Only steps bind their caller: a thread that packs weights may start others, which inherit.
  if (!whole && bound_caller_ != std::this_thread::get_id()) {
    bind(0);
    bound_caller_ = std::this_thread::get_id();
  }
  const uint64_t number = started_.value() + 1;
  if (num_workers_ > 1) {
    region_.store(region, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    whole_.store(whole, std::memory_order_relaxed);
    parts_left_.store(num_workers_ - 1, std::memory_order_relaxed);
    started_.set(number);
  }
  region(context, 0, num_workers_);
  int others = 0;  // parts that workers have taken
  for (int worker = 1; worker < num_workers_; ++worker) {
    if (!take_seat(worker, number, false)) {
      ++others;
    } else if (whole) {
      region(context, worker, num_workers_);
      finish_part(number);
    }
  }
  if (whole && others > 0) {
    uint64_t finished = finished_.value();
    while (finished != number) finished = finished_.wait(finished, kPeerSpin);
  }
  running_ = false;
}

/// True when the caller now has the worker's part of `region`; a worker that takes its own enters.
bool ThreadPool::take_seat(int worker, uint64_t region, bool enter) {
  std::atomic<uint64_t>& word = seats_[static_cast<size_t>(worker)].word;
  uint64_t seat = word.load(std::memory_order_acquire);
  while (seat / 2 < region) {
    const uint64_t taken = region * 2 + (enter ? 1 : seat % 2);
    if (word.compare_exchange_weak(seat, taken, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void ThreadPool::finish_part(uint64_t region) {
  if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.set(region);
}

// What a region is, is read before its seat is taken: a seat still free means that the region has
// not ended.
void ThreadPool::work(int worker) {
  bind(worker);
  for (uint64_t number = 0;;) {
    number = started_.wait(number, options_.spin);
    if (stopping_.load(std::memory_order_relaxed)) return;
    const Region region = region_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const bool whole = whole_.load(std::memory_order_relaxed);
    if (!take_seat(worker, number, true)) continue;
    region(context, worker, num_workers_);
    seats_[static_cast<size_t>(worker)].word.fetch_and(~uint64_t{1}, std::memory_order_release);
    if (whole) finish_part(number);
  }
}

void ThreadPool::settle() const {
  for (int worker = 1; worker < num_workers_; ++worker) {
    const std::atomic<uint64_t>& word = seats_[static_cast<size_t>(worker)].word;
    while (word.load(std::memory_order_acquire) % 2 != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
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
