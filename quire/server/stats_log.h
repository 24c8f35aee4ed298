// StatsLog: one line about throughput, load and cache every interval in which the engine worked.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "quire/engine/engine.h"

namespace quire::server {

/// The line for what happened between two snapshots `elapsed` apart. Rates and the hit rate are of
/// this interval, the rest is as it stands.
std::string stats_line(const engine::EngineStats& before, const engine::EngineStats& now,
                       std::chrono::duration<double> elapsed);

/// Owns a thread that sleeps while the engine is idle: an idle server uses no CPU.
class StatsLog {
 public:
  struct Options {
    std::chrono::milliseconds interval{10'000};
    std::function<engine::EngineStats()> read_stats;
    std::function<void(const std::string&)> write;  // the log, when empty
  };
  explicit StatsLog(Options options);
  /// Writes what has not been told yet.
  ~StatsLog();
  StatsLog(const StatsLog&) = delete;
  StatsLog& operator=(const StatsLog&) = delete;

  /// Called after each step, on the engine's thread; one atomic load unless the engine was idle.
  void observe_step();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::server
