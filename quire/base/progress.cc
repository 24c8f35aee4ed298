#include "quire/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace quire {
namespace {

constexpr std::chrono::milliseconds kRedrawEvery{100};
constexpr std::chrono::seconds kLineEvery{5};

std::string bar_of(double share, int width) {
  const auto filled = static_cast<size_t>(share * width);
  return std::string(filled, '#') + std::string(static_cast<size_t>(width) - filled, '.');
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000.0 && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

ProgressBar::Options ProgressBar::for_stderr() {
  Options options;
  options.redraw = isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (options.redraw && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.columns = size.ws_col;
  }
  return options;
}

ProgressBar::Options ProgressBar::counting(std::string unit) {
  Options options = for_stderr();
  options.unit = std::move(unit);
  return options;
}

ProgressBar::~ProgressBar() {
  finish();
}

void ProgressBar::finish() {
  if (line_open_) std::fputc('\n', options_.out);
  line_open_ = false;
}

void ProgressBar::update(std::string_view phase, int64_t done, int64_t total) {
  const auto now = options_.now();
  const bool new_phase = phase != phase_;
  const bool complete = total > 0 && done >= total;
  if (new_phase) {
    finish();
    phase_ = phase;
    phase_start_ = now;
    phase_first_ = done;
  } else {
    const bool too_soon = now - last_draw_ < (options_.redraw ? kRedrawEvery : kLineEvery);
    if (complete ? done == last_done_ : too_soon) return;
  }
  last_draw_ = now;
  last_done_ = done;
  draw(done, total, now);
}

std::string ProgressBar::amount(int64_t count) const {
  return options_.unit.empty() ? format_bytes(count) : std::to_string(count);
}

void ProgressBar::draw(int64_t done, int64_t total, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - phase_start_).count();
  std::string numbers =
      total > 0 ? fmt::format("{} of {}", amount(done), amount(total)) : amount(done);
  if (!options_.unit.empty()) numbers += " " + options_.unit;
  const double share =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0)
                : 0.0;
  if (total > 0) numbers += fmt::format(", {:3.0f} %", share * 100.0);
  if (seconds >= 0.5 && done > phase_first_) {
    const double rate = static_cast<double>(done - phase_first_) / seconds;
    if (options_.unit.empty()) {
      numbers += fmt::format(", {}/s", format_bytes(static_cast<int64_t>(rate)));
    } else if (done < total) {
      numbers += fmt::format(", {:.0f} s left", static_cast<double>(total - done) / rate);
    }
  }
  if (!options_.redraw) {
    fmt::print(options_.out, "{}: {}\n", phase_, numbers);
  } else {
    constexpr int kWidest = 30;
    constexpr int kNumbers = 38;  // the widest they get, so that the bar keeps its width
    const int room = options_.columns - static_cast<int>(phase_.size()) - kNumbers - 5;
    const std::string bar =
        total > 0 && room >= 8 ? fmt::format("[{}] ", bar_of(share, std::min(room, kWidest))) : "";
    const std::string line = fmt::format("{} {}{}", phase_, bar, numbers);
    const auto fits = static_cast<size_t>(std::max(options_.columns - 1, 1));
    fmt::print(options_.out, "\r{}\x1b[K", line.substr(0, fits));
    line_open_ = true;
  }
  std::fflush(options_.out);
}

}  // namespace quire
