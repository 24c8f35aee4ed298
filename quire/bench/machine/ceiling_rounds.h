// CeilingRounds: ceilings measured again and again between the measurements that are compared with
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/backend/cpu/ceilings/limits.h"
#include "quire/backend/packed_weight.h"
#include "quire/base/huge_buffer.h"

namespace quire::bench {

class CeilingRounds {
 public:
  /// Touches `bytes` of memory to read from and finds the number of streams that reads fastest.
  /// `run` calls a function on `num_workers` workers, and outlives this.
  CeilingRounds(backend::cpu::RunWorkers run, int num_workers, backend::cpu::Level level,
                int64_t bytes = int64_t{256} << 20);

  /// GB/s now; some milliseconds.
  double read();
  /// GOP/s now of what multiplies activations of this type; some milliseconds. Where there is no
  /// instruction for bf16, fp32's.
  double peak(backend::ActType act);
  /// GB/s of memory that someone else holds, read the same way. It has been touched.
  double read_of(const std::byte* data, int64_t bytes) const;

  /// The medians of what was measured so far; a figure never asked for is 0.
  backend::cpu::Ceilings medians() const;

 private:
  const backend::cpu::RunWorkers run_;
  const int num_workers_;
  const backend::cpu::Level level_;
  const backend::cpu::ProbeTable probes_;
  const HugeBuffer memory_;
  backend::cpu::ReadProbe fastest_ = nullptr;
  std::vector<double> reads_;
  std::vector<double> fp32_;
  std::vector<double> bf16_;
  std::vector<double> int8_;
};

}  // namespace quire::bench
