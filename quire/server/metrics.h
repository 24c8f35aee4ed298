// Metrics: what /metrics shows, by vLLM's names, so that existing dashboards work unchanged.
#pragma once

#include <memory>
#include <string>

#include "quire/engine/engine.h"

namespace quire::server {

/// Thread-safe. Histograms are fed as things happen; gauges and counters are read from the engine
/// at each scrape.
class Metrics {
 public:
  struct Options {
    std::string model_name;
    int64_t max_model_len = 0;
    int64_t block_tokens = 0;
    int64_t num_blocks = 0;
  };
  explicit Metrics(const Options& options);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// One choice's event: TTFT, ITL and, with the request's last event, its times and lengths.
  void observe_event(const engine::OutputEvent& event, bool first_of_choice,
                     engine::Clock::duration since_last, engine::Clock::time_point arrival);
  void observe_request(int32_t n, int64_t max_tokens);
  void observe_step(const engine::StepStats& step);
  /// The Prometheus text format.
  std::string scrape(const engine::EngineStats& stats);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::server
