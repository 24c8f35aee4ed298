// OutputChannel: the queue between the engine thread and one request's consumer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "quire/engine/output.h"

namespace quire::engine {

/// The engine pushes and wakes; the consumer takes, waits, or is notified. Thread-safe.
class OutputChannel {
 public:
  /// Adds an event without waking anyone; `last` closes the channel.
  void push(OutputEvent event, bool last);
  /// Wakes the consumer: once a step, after its events.
  void wake();

  /// See OutputStream.
  bool take(std::vector<OutputEvent>& into);
  bool wait(std::vector<OutputEvent>& into);
  void set_notify(std::function<void()> notify);
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<OutputEvent> events_;
  bool closed_ = false;
  // Held while notify_ runs, so that none runs once set_notify has returned.
  std::mutex notify_mutex_;
  std::function<void()> notify_;
};

}  // namespace quire::engine
