// Admission: who may still come in: the bounded waiting queue and the engine's state, for all
// threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "quire/base/result.h"
#include "quire/engine/engine.h"

namespace quire::engine {

class Admission {
 public:
  Admission(int64_t max_waiting_requests, int64_t max_waiting_prompt_tokens)
      : max_requests_(max_waiting_requests), max_tokens_(max_waiting_prompt_tokens) {}

  /// Counts a request in and calls `post` inside the lock, so that nothing is posted once close()
  /// has returned. kOverloaded, or kUnavailable when the engine takes none.
  template <typename Post>
  std::optional<Error> enter(int64_t prompt_tokens, Post&& post) {
    std::lock_guard lock(mutex_);
    if (std::optional<Error> error = refuse(prompt_tokens)) return error;
    ++waiting_requests_;
    waiting_tokens_ += prompt_tokens;
    ++unfinished_;
    post();
    return std::nullopt;
  }
  /// A request of `prompt_tokens` waits no more: it runs, or has ended.
  void leave_queue(int64_t prompt_tokens);
  /// A request has ended.
  void leave();

  /// States only advance: running, draining, stopped or dead.
  void close(Engine::State state);
  Engine::State state() const;
  /// Waits until every request has ended; false when `timeout` came first.
  bool wait_empty(Clock::duration timeout);

 private:
  std::optional<Error> refuse(int64_t prompt_tokens) const;

  const int64_t max_requests_;
  const int64_t max_tokens_;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  Engine::State state_ = Engine::State::kRunning;
  int64_t waiting_requests_ = 0;
  int64_t waiting_tokens_ = 0;
  int64_t unfinished_ = 0;
};

}  // namespace quire::engine
