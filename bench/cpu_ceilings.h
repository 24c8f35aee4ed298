// CpuCeilings: what this processor can do at most, measured: the yardstick of every kernel bench.
#pragma once

#include <cstdint>
#include <functional>

namespace quire::bench {

/// Runs fn(worker) on `num_workers` threads at once, the caller being worker 0, each pinned to a
/// processor; threads spin between calls.
class SpinPool {
 public:
  explicit SpinPool(int num_workers);
  ~SpinPool();
  SpinPool(const SpinPool&) = delete;
  SpinPool& operator=(const SpinPool&) = delete;

  void run(const std::function<void(int)>& fn);
  int num_workers() const { return num_workers_; }

 private:
  struct State;
  int num_workers_;
  State* state_;
};

struct CpuCeilings {
  double read_gb = 0;    // GB/s read from memory, four streams a worker
  double fp32_gops = 0;  // multiply-adds count as two operations
  double bf16_gops = 0;  // 0 where the processor has no such instruction
  double int8_gops = 0;
};

/// Measures all ceilings with the pool's workers; about a second.
CpuCeilings measure_ceilings(SpinPool& pool);

/// Seconds of the fastest of repeated calls, for at least `seconds` and three calls.
double fastest(const SpinPool& pool, double seconds, const std::function<void()>& fn);

}  // namespace quire::bench
