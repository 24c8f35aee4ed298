// ServeReport: what a load run tells of a server: rates, and latencies at mean and percentiles.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include <boost/json/fwd.hpp>

#include "quire/bench/load/stream_record.h"
#include "quire/bench/statistics.h"

namespace quire::bench {

/// Latencies in milliseconds, of the requests that ended as they should.
struct ServeReport {
  int64_t num_requests = 0;
  int64_t num_failed = 0;
  double duration_s = 0;  // until the last answer ended
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;
  Summary ttft;  // from sending to the first token
  Summary tpot;  // (end - first token) / (output tokens - 1); of answers of two tokens or more
  Summary itl;   // between consecutive events of one stream that bring text, of all streams
  Summary e2e;   // from sending to the end
  std::map<std::string, int64_t> errors;  // by message

  double requests_per_s() const;
  double output_tokens_per_s() const;
  double total_tokens_per_s() const;
};

ServeReport make_report(std::span<const StreamRecord> records);

/// A table for people.
std::string format_report(const ServeReport& report);
/// vLLM's names for what vLLM reports too: request_throughput, mean_ttft_ms, p99_itl_ms, ...
boost::json::object report_json(const ServeReport& report);

}  // namespace quire::bench
