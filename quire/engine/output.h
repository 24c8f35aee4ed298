// OutputStream: how a request's tokens leave the engine thread: events in order, one wake a step.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/base/result.h"
#include "quire/runner/logprobs.h"
#include "quire/sched/batch_plan.h"

namespace quire::engine {

using Clock = std::chrono::steady_clock;
using sched::RequestId;

/// Why a choice ended; kNone while it goes on.
enum class FinishReason : uint8_t { kNone, kStop, kLength, kAbort, kError };
inline constexpr int kNumFinishReasons = 5;
/// "stop", "length", "abort", "error"; empty for kNone.
std::string_view finish_reason_name(FinishReason reason);

/// Counts and times of a whole request, all its choices together.
struct RequestSummary {
  int64_t num_prompt_tokens = 0;
  int64_t num_generated_tokens = 0;
  int64_t num_cached_tokens = 0;  // prompt tokens taken from the prefix cache
  Clock::time_point arrival;
  Clock::time_point first_scheduled;  // equal to `arrival` when it never ran
  Clock::time_point first_token;      // equal to `last_token` when there was none
  Clock::time_point last_token;       // the end when there was none
};

/// What one step brought one choice of a request. Feed it to a ChoiceText to get its text.
struct OutputEvent {
  int32_t choice = 0;
  std::vector<int32_t> tokens = {};                     // new ones, the stop token included
  std::vector<runner::PositionLogprobs> logprobs = {};  // one per token, when asked for
  /// In choice 0's first event, when asked for: those of prompt tokens 1, 2, ... (the first has
  /// none).
  std::vector<runner::PositionLogprobs> prompt_logprobs = {};
  /// Set for requests with stop strings, whose text the engine makes: the text that may be shown
  /// now.
  std::optional<std::string> text = {};
  FinishReason finish = FinishReason::kNone;
  std::optional<int32_t> stop_token = {};       // the entry of stop_token_ids that ended the choice
  std::optional<std::string> stop_string = {};  // the stop string that ended the choice
  bool drop_last_text = false;      // the last token ended the choice and is not to be shown
  std::optional<Error> error = {};  // with kError
  std::optional<RequestSummary> summary = {};  // in the request's last event
  Clock::time_point time = {};                 // when the step that made it ended
};

class OutputChannel;
class Inbox;

/// A request's consumer side. Move-only; dropping it before the end cancels the request.
class OutputStream {
 public:
  OutputStream(std::shared_ptr<OutputChannel> channel, std::shared_ptr<Inbox> inbox, RequestId id);
  ~OutputStream();
  OutputStream(OutputStream&&) noexcept;
  OutputStream& operator=(OutputStream&&) noexcept;
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  RequestId id() const { return id_; }
  /// Swaps out the events so far without waiting (`into` is cleared first). Returns false once the
  /// request is over and its last event was taken by an earlier call.
  bool take(std::vector<OutputEvent>& into);
  /// As take(), but waits until there is an event or the request is over.
  bool wait(std::vector<OutputEvent>& into);
  /// `notify` is called from the engine thread, at most once a step, after events were added; at
  /// once if some lie there already. It must not block. An empty one ends the calls: none runs or
  /// will run once set_notify has returned (so do not call it from inside `notify`).
  void set_notify(std::function<void()> notify);
  /// Asks the engine to end the request; its choices then finish with kAbort. Idempotent.
  void cancel();

 private:
  void drop();

  std::shared_ptr<OutputChannel> channel_;
  std::shared_ptr<Inbox> inbox_;
  RequestId id_ = 0;
};

}  // namespace quire::engine
