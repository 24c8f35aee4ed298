#include "quire/base/progress.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace quire {
namespace {

/// A bar that writes into memory and whose clock stands still until it is moved.
class Screen {
 public:
  explicit Screen(bool redraw, std::string unit = {})
      : out_(open_memstream(&text_, &size_)),
        bar_({out_, redraw, 60, [this] { return ProgressBar::Clock::time_point(time_); },
              std::move(unit)}) {}
  ~Screen() {
    bar_.finish();
    std::fclose(out_);
    std::free(text_);
  }

  ProgressBar& bar() { return bar_; }
  void wait(std::chrono::milliseconds duration) { time_ += duration; }
  std::string text() {
    std::fflush(out_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* out_;
  std::chrono::milliseconds time_{1000};
  ProgressBar bar_;
};

TEST(FormatBytes, PowersOfAThousand) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.0 kB");
  EXPECT_EQ(format_bytes(98'362'432), "98.4 MB");
  EXPECT_EQ(format_bytes(4'000'000'000), "4.0 GB");
}

TEST(ProgressBar, LinesAreSparseWithoutATerminal) {
  Screen screen(false);
  for (int i = 0; i <= 100; ++i) {
    screen.bar().update("downloading", i * 1000, 100'000);
    screen.wait(std::chrono::milliseconds(100));
  }
  screen.bar().update("downloading", 100'000, 100'000);
  EXPECT_EQ(screen.text(),
            "downloading: 0 B of 100.0 kB,   0 %\n"
            "downloading: 50.0 kB of 100.0 kB,  50 %, 10.0 kB/s\n"
            "downloading: 100.0 kB of 100.0 kB, 100 %, 10.0 kB/s\n");
}

TEST(ProgressBar, CountedWorkShowsTheTimeLeft) {
  Screen screen(false, "windows");
  screen.bar().update("scoring", 0, 64);
  screen.wait(std::chrono::seconds(8));
  screen.bar().update("scoring", 16, 64);
  screen.bar().update("scoring", 64, 64);
  EXPECT_EQ(screen.text(),
            "scoring: 0 of 64 windows,   0 %\n"
            "scoring: 16 of 64 windows,  25 %, 24 s left\n"
            "scoring: 64 of 64 windows, 100 %\n");
}

TEST(ProgressBar, ATerminalLineIsRedrawnAndEndedOnce) {
  Screen screen(true);
  screen.bar().update("unpacking", 0, 1000);
  screen.wait(std::chrono::milliseconds(50));
  screen.bar().update("unpacking", 400, 1000);  // too soon
  screen.wait(std::chrono::milliseconds(50));
  screen.bar().update("unpacking", 500, 1000);
  screen.bar().finish();
  screen.bar().finish();
  EXPECT_EQ(screen.text(),
            "\runpacking [........] 0 B of 1.0 kB,   0 %\x1b[K"
            "\runpacking [####....] 500 B of 1.0 kB,  50 %\x1b[K\n");
}

TEST(ProgressBar, AnUnknownTotalShowsWhatIsDone) {
  Screen screen(false);
  screen.bar().update("waiting", 0, 0);
  EXPECT_EQ(screen.text(), "waiting: 0 B\n");
}

TEST(ProgressBar, NoLineIsWiderThanTheTerminal) {
  Screen screen(true);
  screen.bar().update(std::string(200, 'x'), 1, 2);
  EXPECT_EQ(screen.text(), "\r" + std::string(59, 'x') + "\x1b[K");
}

}  // namespace
}  // namespace quire
