// ProgressBar: shows how far a long piece of work is, one redrawn line on a terminal, sparse lines
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace quire {

/// "98.4 MB", in powers of 1000, as downloads are counted.
std::string format_bytes(int64_t bytes);

/// Work counted in bytes (or Options::unit), done in named phases. Not thread-safe.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::FILE* out = stderr;
    bool redraw = false;  // the output is a terminal
    int columns = 80;
    std::function<Clock::time_point()> now = Clock::now;
    /// What is counted, in the plural ("windows"); the time left is then shown. Empty: bytes, and
    /// their rate.
    std::string unit = {};
  };

  /// For stderr as it is: redrawn when it is a terminal.
  static Options for_stderr();
  /// The same for work counted in `unit`.
  static Options counting(std::string unit);

  ProgressBar() : ProgressBar(for_stderr()) {}
  explicit ProgressBar(Options options) : options_(std::move(options)) {}
  /// Ends the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows `done` of `total` bytes of `phase`; a total of 0 means it is not known. Draws at most
  /// ten times a second, or once in five seconds where lines cannot be redrawn, and always when the
  /// phase changes or is complete.
  void update(std::string_view phase, int64_t done, int64_t total);
  /// Ends the current line, so that other output can follow.
  void finish();

 private:
  std::string amount(int64_t count) const;
  void draw(int64_t done, int64_t total, Clock::time_point now);

  Options options_;
  std::string phase_;
  Clock::time_point phase_start_;
  Clock::time_point last_draw_;
  int64_t phase_first_ = 0;  // bytes already done when the phase began
  int64_t last_done_ = -1;
  bool line_open_ = false;
};

}  // namespace quire
