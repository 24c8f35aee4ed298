// Engine: one thread that advances all requests together, step by step, and streams their tokens.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quire/base/result.h"
#include "quire/engine/output.h"
#include "quire/sched/sampling_spec.h"
#include "quire/sched/scheduler.h"
#include "quire/sched/scheduler_options.h"

namespace quire::text {
class Tokenizer;
}
namespace quire::runner {
class Runner;
class KeptTier;
}  // namespace quire::runner

namespace quire::engine {

/// One request as the engine takes it: ids in, numbers for the sampler, strings to stop at.
struct EngineRequest {
  std::vector<int32_t> prompt = {};
  /// stop_token_ids holds the request's own; the engine adds the model's unless ignore_eos.
  /// max_tokens 0 scores the prompt only.
  sched::SamplingSpec sampling = {};
  int32_t n = 1;                // choices; choice c is drawn from (seed, c)
  int32_t priority = 0;         // lower first, where the policy looks at it; else it must be 0
  std::string cache_salt = {};  // cached prefixes are shared with requests of the same salt only
  std::vector<std::string> stop = {};
  bool include_stop_str_in_output = false;  // also for stop tokens
  bool skip_special_tokens = true;
  std::optional<Clock::time_point> arrival = {};  // now, when not given
};

/// A snapshot for gauges and counters; counters only grow.
struct EngineStats {
  int64_t num_running = 0;    // sequences that hold a row
  int64_t num_waiting = 0;    // submitted or preempted, holding none
  double kv_cache_usage = 0;  // used blocks / blocks, 0 to 1
  int64_t num_steps = 0;
  int32_t token_budget = 0;  // of the last step
  int64_t num_preemptions = 0;
  int64_t prompt_tokens = 0;  // of prompts computed to their end
  int64_t prompt_tokens_cached = 0;
  int64_t generation_tokens = 0;
  int64_t prefix_cache_queries = 0;  // tokens
  int64_t prefix_cache_hits = 0;     // tokens
  double swap_usage = 0;             // blocks that sequences hold / blocks, 0 to 1
  sched::SwapCounts swap;
  std::array<int64_t, kNumFinishReasons> finished{};  // choices, by FinishReason
};

/// One step, for histograms.
struct StepStats {
  int64_t num_tokens = 0;
  int64_t num_rows = 0;
  Clock::duration duration{};
};

class Engine {
 public:
  enum class State : uint8_t { kRunning, kDraining, kStopped, kDead };

  struct Options {
    sched::SchedulerOptions scheduler = {};
    int64_t vocab_size = 0;  // the logits' width; every id in a request lies below it
    int32_t max_logprobs = 20;
    int32_t max_choices = 128;
    std::vector<int32_t> eos_token_ids = {};  // the model's own stops
    int64_t max_waiting_requests = 1024;
    int64_t max_waiting_prompt_tokens = 4 << 20;
    /// While choices are between their first and last token, steps get only as many tokens as they
    /// are expected to end in this time with (StepPace); 0: the scheduler's option alone.
    Clock::duration target_itl{0};
    /// Gives the swap space what an earlier run left in it, and is given what this one leaves. May
    /// be null; outlives the engine.
    runner::KeptTier* kept_tier = nullptr;
    std::function<void(const StepStats&)> on_step =
        {};  // called on the engine thread; may be empty
    /// For tests: called on the engine thread for each KV block that has come to hold nothing. May
    /// be empty.
    std::function<void(int32_t block)> on_block_freed = {};
  };

  /// Starts the thread. `tokenizer` (may be null: requests with stop strings are refused) and
  /// `runner` must outlive the engine. Throws LoadError on impossible scheduler options.
  Engine(Options options, runner::Runner& runner, const text::Tokenizer* tokenizer);
  ~Engine();  // stop()
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Checks and queues a request; thread-safe, never waits for a step. kInvalid names the field at
  /// fault, kOverloaded: the waiting queue is full, kUnavailable: draining, stopped or dead.
  Result<OutputStream> submit(EngineRequest request);
  /// Ends a request early; unknown ids are ignored. Thread-safe.
  void cancel(RequestId id);

  /// Takes no more requests and waits until the running ones ended. Returns true when all did
  /// within `timeout`.
  bool drain(Clock::duration timeout);
  /// Takes no more requests and cancels the running ones; returns when the thread has ended, and
  /// with Options::kept_tier when the cached blocks are written.
  void stop();

  State state() const;
  EngineStats stats() const;
  const Options& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::engine
