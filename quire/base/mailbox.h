// Mailbox<T>: how two threads meet: many senders, one receiver, one wake for all that was sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace quire {

template <typename T>
class Mailbox {
 public:
  /// Adds a letter and wakes the receiver.
  void post(T letter) {
    {
      std::lock_guard lock(mutex_);
      letters_.push_back(std::move(letter));
    }
    wake_.notify_one();
  }

  /// Swaps out all letters without waiting; `into` is cleared first (its capacity is kept).
  void take(std::vector<T>& into) {
    into.clear();
    std::lock_guard lock(mutex_);
    letters_.swap(into);
  }

  /// As take(), but waits until there is a letter or close() was called. Returns false once closed
  /// and empty.
  bool wait(std::vector<T>& into) {
    into.clear();
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return closed_ || !letters_.empty(); });
    letters_.swap(into);
    return !into.empty() || !closed_;
  }

  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<T> letters_;
  bool closed_ = false;
};

}  // namespace quire
