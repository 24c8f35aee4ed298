// Meter: counts what one rendering spends (operations, time, output, live memory, depth) and stops
// it at its budget.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quire/text/chat_template.h"

namespace quire::text::jinja {

/// Live bytes of all values and buffers of one rendering.
inline constexpr int64_t kMaxLiveBytes = int64_t{64} << 20;

class Meter {
 public:
  explicit Meter(const RenderBudget& budget);
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  /// Charges `operations`; throws RenderError past the budget of operations or of time. Time is
  /// this thread's CPU time, so a busy machine fails no request.
  void step(int64_t operations = 1) {
    operations_ += operations;
    if (operations_ >= next_check_) [[unlikely]]
      check();
  }
  /// Charges work on `bytes` bytes of text: one operation for each 256.
  void step_bytes(size_t bytes) { step(1 + static_cast<int64_t>(bytes / 256)); }

  /// Charges `bytes` of live memory, before they are allocated.
  void allocate(size_t bytes) {
    live_bytes_ += static_cast<int64_t>(bytes);
    if (live_bytes_ > kMaxLiveBytes) [[unlikely]] {
      live_bytes_ -= static_cast<int64_t>(bytes);
      throw_memory();
    }
  }
  void release(size_t bytes) { live_bytes_ -= static_cast<int64_t>(bytes); }
  /// Throws if `bytes` more could not be allocated; charges nothing.
  void require(size_t bytes) const {
    if (bytes > static_cast<size_t>(kMaxLiveBytes) ||
        live_bytes_ + static_cast<int64_t>(bytes) > kMaxLiveBytes) [[unlikely]]
      throw_memory();
  }
  /// Throws if an output of `bytes` bytes is past the budget.
  void check_output(size_t bytes) const {
    if (static_cast<int64_t>(bytes) > max_output_bytes_) [[unlikely]]
      throw_output();
  }

  int32_t max_depth() const { return max_depth_; }
  int64_t live_bytes() const { return live_bytes_; }

 private:
  friend class DepthGuard;
  void check();
  [[noreturn]] void throw_memory() const;
  [[noreturn]] void throw_output() const;
  [[noreturn]] void throw_depth() const;

  int64_t operations_ = 0;
  int64_t next_check_ = 0;
  int64_t live_bytes_ = 0;
  int64_t max_operations_;
  int64_t max_output_bytes_;
  int64_t max_time_ms_;
  int64_t start_us_;
  int32_t depth_ = 0;
  int32_t max_depth_;
};

/// Holds one level of nesting (a macro call, a nested container being printed) while it lives.
class DepthGuard {
 public:
  explicit DepthGuard(Meter& meter) : meter_(meter) {
    if (meter_.depth_ >= meter_.max_depth_) meter_.throw_depth();
    ++meter_.depth_;
  }
  ~DepthGuard() { --meter_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Meter& meter_;
};

}  // namespace quire::text::jinja
