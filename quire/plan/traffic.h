// Traffic: users who each send a request, wait for its end and send the next, played on the real
// scheduler with a model that takes the time the roofline says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/plan/forecast.h"

namespace quire::plan {

/// Tokens a request brings and asks for.
struct RequestLength {
  int32_t prompt_len = 0;
  int32_t output_len = 0;
};

/// JSON lines {"input_len": 161, "output_len": 338}; other members are ignored, empty lines
/// skipped. Throws LoadError naming `where` and the line.
std::vector<RequestLength> parse_request_lengths(std::string_view text, const std::string& where);

struct TrafficOptions {
  int32_t users = 1;
  std::vector<RequestLength> lengths;  // drawn from evenly
  uint64_t seed = 0;
  int32_t num_requests = 0;  // 0: 8 for each user, and at least 64
};

struct TrafficResult {
  int32_t requests = 0;
  int32_t refused = 0;  // too long for the context or the pool
  int64_t steps = 0;
  int64_t output_tokens = 0;
  double mean_running = 0;  // sequences in a step
  int32_t peak_running = 0;
  double mean_waiting = 0;
  double mean_kv_usage = 0;  // share of the pool
  double peak_kv_usage = 0;
  int64_t preemptions = 0;
  int32_t preempted_requests = 0;
  /// The share of requests that are preempted at least once.
  double preemption_probability() const;
  /// With the step times of the plan's roofline; 0 when the device has no ceilings.
  double seconds = 0;
  double tokens_per_s = 0;
  double ttft_p50 = 0, ttft_p99 = 0;
  double itl_mean = 0, itl_p99 = 0;
};

/// The same result for the same options and plan. Throws LoadError when no length can run at all.
/// Requires plan.fits.
TrafficResult play_traffic(const Plan& plan, const TrafficOptions& options);

}  // namespace quire::plan
