// LimitsTable: every ceiling of a machine in detail: reads by streams and pages, peaks by
// instruction set, what synchronising costs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "quire/backend/cpu/ceilings.h"
#include "quire/backend/cpu/ceilings/probing.h"

namespace quire::backend::cpu {

struct ReadLimit {
  int threads = 0;
  int streams = 0;  // a thread
  bool huge_pages = false;
  Figure gbs;
};

struct CacheLimit {
  int level = 0;  // 1, 2, 3
  int threads = 0;
  int64_t bytes = 0;  // that a thread goes over again and again
  Figure gbs;
};

enum class Arithmetic : uint8_t { kF32, kBF16, kI8 };
const char* arithmetic_name(Arithmetic arithmetic);

struct PeakLimit {
  Level level = Level::kScalar;
  Arithmetic arithmetic = Arithmetic::kF32;
  std::string instruction;
  int threads = 0;
  Figure gops;
};

struct SyncLimit {
  int threads = 0;
  Figure fork_join_us;
  Figure barrier_us;
};

struct LimitsTable {
  std::string cpu;
  int threads = 0;
  std::vector<ReadLimit> reads;
  std::vector<CacheLimit> caches;
  std::vector<PeakLimit> peaks;
  SyncLimit sync;
};

struct LimitsOptions {
  int threads = 0;                               // 0 = default_thread_count()
  std::vector<Level> levels = {};                // empty: all that the processor has
  std::vector<bool> huge_pages = {true, false};  // page kinds to read from
  int64_t read_bytes = 0;                        // a thread reads; 0: enough to leave the caches
  int repetitions = 7;
  std::function<void(int done, int total)> on_progress = {};
};

/// Measures in rounds, every figure once a round, so that a disturbance touches all of them alike.
/// Figures are taken with one thread and with all. Throws LoadError when memory cannot be had.
LimitsTable measure_limits(const LimitsOptions& options);

/// The figures of `level` (the reads are made by the best level) as Ceilings.
Ceilings summarize(const LimitsTable& table, Level level);

}  // namespace quire::backend::cpu
