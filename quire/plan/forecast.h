// Forecast: prefill and decode times of a plan over batch sizes, as ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/plan/roofline.h"

namespace quire::plan {

/// Seconds with the device's high and low reach.
struct TimeRange {
  double fast = 0;
  double slow = 0;
  double middle() const { return (fast + slow) / 2; }
};

/// Decode with `batch` sequences in flight.
struct BatchPoint {
  int64_t batch = 0;
  int64_t context = 0;  // of each
  bool fits = false;    // the pool holds them all
  TimeRange itl;        // inter-token latency = the step's time
  int64_t operations = 0;
  int64_t bytes = 0;
  double intensity() const {
    return bytes > 0 ? static_cast<double>(operations) / static_cast<double>(bytes) : 0.0;
  }
  double fast_tokens_per_s() const { return static_cast<double>(batch) / itl.fast; }
  double slow_tokens_per_s() const { return static_cast<double>(batch) / itl.slow; }
};

struct Forecast {
  int64_t prompt_len = 0;
  int64_t output_len = 0;
  /// Time to first token of a prompt alone: its prefill steps.
  TimeRange ttft;
  std::vector<BatchPoint> batches;
  StepTime prefill;  // the first of those steps, line by line
  StepTime decode;   // a step of one sequence, in the middle of its output
};

/// Batches are 1, 2, 4, ... up to max_num_seqs. Requires a device with ceilings.
Forecast forecast(const Plan& plan, int64_t prompt_len, int64_t output_len);

/// How long a step takes, from (tokens, context read, logits rows), by interpolation between steps
/// that were reckoned line by line: fast enough for a simulator.
class StepClock {
 public:
  explicit StepClock(const Plan& plan);
  /// Seconds, in the middle of the range. `context` is the sum over rows.
  double seconds(int64_t tokens, int64_t context) const;

 private:
  struct Sample {
    double tokens;
    double base;         // seconds at no context
    double per_context;  // seconds a token of context
  };
  std::vector<Sample> samples_;
};

}  // namespace quire::plan
