#include "quire/text/chat_template/meter.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "quire/text/chat_template/render_error.h"

namespace quire::text::jinja {
namespace {

constexpr int64_t kCheckInterval = 2048;  // operations between two looks at the clock

int64_t thread_time_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

Meter::Meter(const RenderBudget& budget)
    : next_check_(std::min(kCheckInterval, budget.max_operations + 1)),
      max_operations_(budget.max_operations),
      max_output_bytes_(budget.max_output_bytes),
      max_time_ms_(budget.max_time_ms),
      start_us_(thread_time_us()),
      max_depth_(budget.max_depth) {}

void Meter::check() {
  if (operations_ > max_operations_) {
    throw RenderError(
        fmt::format("the template needs more than its budget of {} operations", max_operations_));
  }
  if (thread_time_us() - start_us_ > max_time_ms_ * 1000) {
    throw RenderError(
        fmt::format("the template needs more than its budget of {} ms", max_time_ms_));
  }
  next_check_ = std::min(operations_ + kCheckInterval, max_operations_ + 1);
}

void Meter::throw_memory() const {
  throw RenderError(
      fmt::format("the template needs more than its budget of {} bytes of memory", kMaxLiveBytes));
}

void Meter::throw_output() const {
  throw RenderError(
      fmt::format("the template writes more than its budget of {} bytes", max_output_bytes_));
}

void Meter::throw_depth() const {
  throw RenderError(
      fmt::format("the template nests deeper than its budget of {} levels", max_depth_));
}

}  // namespace quire::text::jinja
