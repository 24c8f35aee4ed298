// LoadGenerator: sends requests to a server at their times and notes when the answers' tokens come.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "quire/bench/load/stream_record.h"
#include "quire/bench/load/target.h"

namespace quire::bench {

struct LoadRequest {
  std::string body;      // JSON of a streamed request
  double arrival_s = 0;  // from the start of the run; ascending
};

struct LoadOptions {
  std::string endpoint = "/v1/completions";
  /// Requests in flight at most; 0: no limit. With a limit, a request that arrives while it is
  /// reached is sent, and its clock started, when another has ended.
  int32_t max_concurrency = 0;
  /// A stream that brings nothing for so long has failed.
  double idle_timeout_s = 600;
  /// Called about twice a second and at the end: what has been done so far. May be empty.
  std::function<void(int64_t num_done, int64_t num_running, int64_t num_failed, double elapsed_s)>
      on_progress = {};
};

/// Sends all requests, each on a connection of its own; returns when every answer has ended or
/// failed, in the order of `requests`. One thread, a coroutine a stream.
std::vector<StreamRecord> run_load(const Target& target, std::span<const LoadRequest> requests,
                                   const LoadOptions& options);

/// The body of a plain GET that answered 200. Throws LoadError.
std::string fetch(const Target& target, const std::string& path);

}  // namespace quire::bench
