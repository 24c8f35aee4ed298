// Probing: one repetition of a ceiling's measurement with given workers, and what repetitions gave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "quire/backend/cpu/ceilings/probes.h"
#include "quire/backend/cpu/levels.h"

namespace quire::backend::cpu {

double seconds_of(const std::function<void()>& fn);
int64_t round_down(int64_t bytes, int64_t unit);

/// What repetitions of one measurement gave. For rates the best is the highest, for times the
/// lowest.
struct Figure {
  double median = 0;
  double best = 0;
};

Figure rate_figure(std::vector<double> rates);
Figure time_figure(std::vector<double> times);

ProbeTable probe_table(Level level);

/// Calls fn(worker, num_workers) on all workers at once: ThreadPool::run or Backend::parallel.
using RunWorkers = std::function<void(const std::function<void(int, int)>& fn)>;

/// GB/s of one reading of `bytes`, each worker `passes` times over its own even share. The memory
/// must have been touched.
double read_rate(const RunWorkers& run, ReadProbe probe, const std::byte* data, int64_t bytes,
                 int64_t passes = 1);
/// GOP/s of all workers over some milliseconds; 0 where there is no such probe.
double peak_rate(const RunWorkers& run, const PeakProbe& probe);

/// Bytes of a cache as the system reports them for the first processor: level 1 means data. 0 where
/// it reports none, or what no processor has.
int64_t cache_bytes(int level, const std::string& root = "/sys/devices/system/cpu");

}  // namespace quire::backend::cpu
