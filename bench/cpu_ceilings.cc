#include "bench/cpu_ceilings.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "quire/backend/cpu/levels.h"
#include "quire/base/huge_buffer.h"

namespace quire::bench {
namespace {

void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Seconds; of this thread's processor time alone when there are no other workers to wait for, so
/// that other jobs of a busy machine count less.
double now(bool alone) {
  timespec time = {};
  clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Sixteen independent accumulators hide the latency of the instruction that stands between.
#define QUIRE_SIXTEEN(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define QUIRE_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define QUIRE_FMA512(i) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #i "\n"
#define QUIRE_BF16(i) "vdpbf16ps %%zmm30, %%zmm31, %%zmm" #i "\n"
#define QUIRE_INT8(i) "vpdpbusd %%zmm30, %%zmm31, %%zmm" #i "\n"
#define QUIRE_FMA256(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n"
#define QUIRE_MADD256(i) "vpmaddubsw %%ymm14, %%ymm15, %%ymm" #i "\n"

// The registers' contents do not matter as long as they are no denormals: zeros.
#define QUIRE_CLEAR512 "vpxord %%zmm30, %%zmm30, %%zmm30\nvpxord %%zmm31, %%zmm31, %%zmm31\n"
#define QUIRE_PEAK(name, clear, repeated)                                    \
  void name(int64_t n) {                                                     \
    __asm__ volatile("vzeroall\n" clear ::: "memory");                       \
    for (int64_t i = 0; i < n; ++i) __asm__ volatile(repeated ::: "memory"); \
  }
QUIRE_PEAK(peak_fma512, QUIRE_CLEAR512, QUIRE_SIXTEEN(QUIRE_FMA512))
QUIRE_PEAK(peak_bf16, QUIRE_CLEAR512, QUIRE_SIXTEEN(QUIRE_BF16))
QUIRE_PEAK(peak_int8, QUIRE_CLEAR512, QUIRE_SIXTEEN(QUIRE_INT8))
QUIRE_PEAK(peak_fma256, "", QUIRE_TWELVE(QUIRE_FMA256))
QUIRE_PEAK(peak_madd256, "", QUIRE_TWELVE(QUIRE_MADD256))

double gops(SpinPool& pool, void (*loop)(int64_t), int operations) {
  constexpr int64_t kCount = 1000000;
  const double seconds = fastest(pool, 0.1, [&] { pool.run([&](int) { loop(kCount); }); });
  return static_cast<double>(kCount) * operations * pool.num_workers() / seconds / 1e9;
}

/// Reads a buffer as four distant streams, 64 bytes a step.
void read_four_streams(const std::byte* data, int64_t bytes) {
  const int64_t quarter = bytes / 4;
  uint64_t sum = 0;
  for (int64_t i = 0; i < quarter; i += 64) {
    for (int64_t stream = 0; stream < 4; ++stream) {
      const std::byte* line = data + stream * quarter + i;
      __builtin_prefetch(line + 1024);
      uint64_t word = 0;
      __builtin_memcpy(&word, line, 8);
      sum += word;
    }
  }
  __asm__ volatile("" ::"r"(sum));
}

double read_bandwidth(SpinPool& pool) {
  constexpr int64_t kBytes = int64_t{256} << 20;  // a worker
  const HugeBuffer buffer(kBytes * pool.num_workers(), MemoryTag::kOther, nullptr);
  pool.run([&](int worker) {
    for (int64_t i = 0; i < kBytes; i += 64) buffer.data()[worker * kBytes + i] = std::byte{1};
  });
  const double seconds = fastest(pool, 0.3, [&] {
    pool.run([&](int worker) { read_four_streams(buffer.data() + worker * kBytes, kBytes); });
  });
  return static_cast<double>(kBytes) * pool.num_workers() / seconds / 1e9;
}

}  // namespace

struct SpinPool::State {
  alignas(128) std::atomic<uint64_t> generation{0};
  alignas(128) std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  const std::function<void(int)>* fn = nullptr;
  std::vector<std::thread> threads;
};

SpinPool::SpinPool(int num_workers) : num_workers_(num_workers), state_(new State) {
  pin(0);
  for (int worker = 1; worker < num_workers; ++worker) {
    state_->threads.emplace_back([this, worker] {
      pin(worker);
      uint64_t seen = 0;
      for (;;) {
        uint64_t generation = 0;
        while ((generation = state_->generation.load(std::memory_order_acquire)) == seen) {
          __builtin_ia32_pause();
        }
        seen = generation;
        if (state_->stop) return;
        (*state_->fn)(worker);
        state_->running.fetch_sub(1, std::memory_order_release);
      }
    });
  }
}

SpinPool::~SpinPool() {
  state_->stop = true;
  state_->generation.fetch_add(1, std::memory_order_release);
  for (std::thread& thread : state_->threads) thread.join();
  delete state_;
}

void SpinPool::run(const std::function<void(int)>& fn) {
  state_->fn = &fn;
  state_->running.store(num_workers_ - 1, std::memory_order_relaxed);
  state_->generation.fetch_add(1, std::memory_order_release);
  fn(0);
  while (state_->running.load(std::memory_order_acquire) != 0) __builtin_ia32_pause();
}

double fastest(const SpinPool& pool, double seconds, const std::function<void()>& fn) {
  fn();
  double best = 1e30;
  const bool alone = pool.num_workers() == 1;
  const double start = now(alone);
  for (int calls = 0; calls < 3 || now(alone) - start < seconds; ++calls) {
    const double begin = now(alone);
    fn();
    best = std::min(best, now(alone) - begin);
  }
  return best;
}

CpuCeilings measure_ceilings(SpinPool& pool) {
  using backend::cpu::Level;
  CpuCeilings ceilings;
  ceilings.read_gb = read_bandwidth(pool);
  switch (backend::cpu::chosen_level()) {
    case Level::kAvx512:
      ceilings.fp32_gops = gops(pool, peak_fma512, 16 * 32);
      ceilings.bf16_gops = gops(pool, peak_bf16, 16 * 64);
      ceilings.int8_gops = gops(pool, peak_int8, 16 * 128);
      break;
    case Level::kAvx2:
      ceilings.fp32_gops = gops(pool, peak_fma256, 12 * 16);
      ceilings.int8_gops = gops(pool, peak_madd256, 12 * 64);
      break;
    case Level::kScalar:
      break;
  }
  return ceilings;
}

}  // namespace quire::bench
