#include "quire/engine/admission.h"

#include <algorithm>

#include <fmt/format.h>

namespace quire::engine {

std::optional<Error> Admission::refuse(int64_t prompt_tokens) const {
  switch (state_) {
    case Engine::State::kRunning:
      break;
    case Engine::State::kDraining:
    case Engine::State::kStopped:
      return Error{ErrorKind::kUnavailable, "The server is shutting down.", ""};
    case Engine::State::kDead:
      return Error{ErrorKind::kUnavailable, "The engine has failed; the server must be restarted.",
                   ""};
  }
  if (waiting_requests_ >= max_requests_) {
    return Error{ErrorKind::kOverloaded,
                 fmt::format("Too many requests are waiting ({}). Try again later.", max_requests_),
                 ""};
  }
  // A single long prompt may wait in an empty queue, whatever the limit.
  if (waiting_requests_ > 0 && waiting_tokens_ + prompt_tokens > max_tokens_) {
    return Error{ErrorKind::kOverloaded,
                 fmt::format("Too many prompt tokens are waiting ({} of at most {}). Try again "
                             "later.",
                             waiting_tokens_, max_tokens_),
                 ""};
  }
  return std::nullopt;
}

void Admission::leave_queue(int64_t prompt_tokens) {
  std::lock_guard lock(mutex_);
  --waiting_requests_;
  waiting_tokens_ -= prompt_tokens;
}

void Admission::leave() {
  std::lock_guard lock(mutex_);
  if (--unfinished_ == 0) empty_.notify_all();
}

void Admission::close(Engine::State state) {
  std::lock_guard lock(mutex_);
  state_ = std::max(state_, state);
}

Engine::State Admission::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

bool Admission::wait_empty(Clock::duration timeout) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, timeout, [this] { return unfinished_ == 0; });
}

}  // namespace quire::engine
