// RequestTable: the requests in flight and what each step brings their choices, seen by the engine
// thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "quire/engine/admission.h"
#include "quire/engine/inbox.h"
#include "quire/engine/stop_text.h"
#include "quire/runner/runner.h"
#include "quire/sched/batch_plan.h"
#include "quire/sched/scheduler.h"

namespace quire::engine {

/// A step passes through in three calls: begin(plan), judge(output), deliver(commit's events).
/// Counts what happens in stats().
class RequestTable {
 public:
  /// `tokenizer` may be null when no request has stop strings. Both outlive the table.
  RequestTable(int32_t max_rows, const text::Tokenizer* tokenizer,
               std::vector<int32_t> eos_token_ids, Admission& admission);

  bool empty() const { return requests_.empty(); }
  std::vector<RequestId> ids() const;
  /// Takes over a request that goes to the scheduler.
  void add(const Submission& submission);
  /// Ends a request's remaining choices and with them its stream; unknown ids are ignored.
  void end(RequestId id, FinishReason reason, const std::optional<Error>& error,
           Clock::time_point now);
  void end_all(FinishReason reason, const std::optional<Error>& error, Clock::time_point now);

  /// Notes which sequences the plan's rows stand for.
  void begin(const sched::BatchPlan& plan, Clock::time_point now);
  /// Looks at the sampled tokens: stop tokens and stop strings, log-probabilities. The result is
  /// what the scheduler commits; valid until the next call. Log-probabilities are moved out of
  /// `output`.
  std::span<const sched::SampledToken> judge(const sched::BatchPlan& plan,
                                             runner::StepOutput& output);
  /// Sends what the commit made final.
  void deliver(std::span<const sched::CommitEvent> events, Clock::time_point now);
  /// Wakes each consumer that was sent something since the last call, once; then tells admission
  /// who has left.
  void wake();

  const EngineStats& stats() const { return stats_; }
  /// Choices between their first and their last token.
  int32_t num_streaming() const { return num_streaming_; }

 private:
  struct Choice {
    int32_t num_output = 0;
    bool ended = false;
    bool streaming = false;          // its first token was sent, its last was not
    std::unique_ptr<StopText> text;  // null without stop strings
    OutputEvent pending;             // what the step in flight brings
  };
  struct Request {
    RequestId id = 0;
    sched::SamplingSpec sampling;
    bool include_stop = false;
    bool has_started = false;
    bool prompt_counted = false;
    int32_t num_unended = 0;
    RequestSummary summary;
    std::vector<Choice> choices;
    std::shared_ptr<OutputChannel> channel;
  };
  struct Owner {
    Request* request = nullptr;
    int32_t choice = 0;
  };

  bool take_token(const Request& request, Choice& choice, int32_t token);
  void send(Request& request, int32_t index, FinishReason finish, Clock::time_point now);
  void leave_queue(Request& request);
  void forget_ended(const Request& request);

  const text::Tokenizer* tokenizer_;
  const std::vector<int32_t> eos_token_ids_;
  Admission& admission_;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::vector<Owner> rows_;  // by RowId
  std::vector<sched::SampledToken> sampled_;
  std::vector<std::shared_ptr<OutputChannel>> touched_;
  int64_t num_forgotten_ = 0;  // since the last wake
  int32_t num_streaming_ = 0;
  EngineStats stats_;
};

}  // namespace quire::engine
