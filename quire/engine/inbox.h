// Inbox: what other threads tell the engine thread: requests, cancellations, the end.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "quire/base/mailbox.h"
#include "quire/engine/engine.h"
#include "quire/engine/output_channel.h"
#include "quire/sched/request.h"

namespace quire::engine {

/// A checked request: the scheduler's part, and how its text is made.
struct Submission {
  sched::Request request;
  std::vector<std::string> stop;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  Clock::time_point arrival;
  std::shared_ptr<OutputChannel> channel;
};
struct Cancellation {
  RequestId id = 0;
};
/// Cancels everything and ends the thread.
struct Stop {};

using Letter = std::variant<Submission, Cancellation, Stop>;

/// Shared by the engine and its streams, so that a stream may outlive the engine.
class Inbox {
 public:
  void post(Letter letter) { mailbox_.post(std::move(letter)); }
  /// Swaps out what has come; waits for something when `wait`.
  void read(std::vector<Letter>& into, bool wait) {
    if (wait) {
      mailbox_.wait(into);
    } else {
      mailbox_.take(into);
    }
  }

 private:
  Mailbox<Letter> mailbox_;
};

}  // namespace quire::engine
