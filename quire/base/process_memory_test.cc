#include "quire/base/process_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "quire/base/sanitizer.h"

namespace quire {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// The kernel adds pages to a process's counters in batches, one a thread.
constexpr double kTolerance = 0.5 * kMiB;

TEST(ProcessMemory, ReadsBothFiles) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("quire_proc_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "status") << "Name:\tquire\nVmSize:\t 9000 kB\nVmHWM:\t 800 kB\n"
                                      "VmRSS:\t 700 kB\nRssAnon:\t 500 kB\nRssFile:\t 200 kB\n"
                                      "VmSwap:\t 3 kB\nThreads:\t4\n";
  ProcessMemory memory = read_process_memory(folder);
  EXPECT_EQ(memory.rss, 700 * 1024);
  EXPECT_EQ(memory.pss, 0);
  std::ofstream(folder / "smaps_rollup")
      << "5500-7ffc ---p 00000000 00:00 0     [rollup]\nRss:      900 kB\nPss:     600 kB\n"
         "Pss_Anon:   1 kB\nAnonymous:   512 kB\nAnonHugePages:   256 kB\n";
  memory = read_process_memory(folder);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(memory.address_space, 9000 * 1024);
  EXPECT_EQ(memory.rss, 900 * 1024);
  EXPECT_EQ(memory.peak_rss, 900 * 1024);  // no less than what is there
  EXPECT_EQ(memory.pss, 600 * 1024);
  EXPECT_EQ(memory.anonymous, 512 * 1024);
  EXPECT_EQ(memory.file, 200 * 1024);
  EXPECT_EQ(memory.huge_pages, 256 * 1024);
  EXPECT_EQ(memory.swap, 3 * 1024);
}

TEST(ProcessMemory, NothingThereIsNothing) {
  const ProcessMemory memory = read_process_memory("/nonexistent");
  EXPECT_EQ(memory.rss, 0);
  EXPECT_EQ(memory.peak_rss, 0);
}

TEST(ProcessMemory, SeesWhatThisProcessTouches) {
  if (kThreadSanitizer) GTEST_SKIP() << "the sanitizer's shadow grows with what is touched";
  const ProcessMemory before = read_process_memory();
  if (before.rss == 0) GTEST_SKIP() << "no /proc here";
  EXPECT_GT(before.anonymous, 0);
  EXPECT_GE(before.address_space, before.rss);
  EXPECT_LE(before.pss, before.rss);
  constexpr size_t kBytes = 32 * kMiB;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const ProcessMemory reserved = read_process_memory();
  EXPECT_NEAR(static_cast<double>(reserved.rss - before.rss), 0, kTolerance);
  EXPECT_GE(reserved.address_space - before.address_space, int64_t{kBytes});
  std::memset(pages, 1, kBytes);
  const ProcessMemory touched = read_process_memory();
  EXPECT_NEAR(static_cast<double>(touched.rss - before.rss), kBytes, kTolerance);
  EXPECT_NEAR(static_cast<double>(touched.anonymous - before.anonymous), kBytes, kTolerance);
  munmap(pages, kBytes);
  const ProcessMemory freed = read_process_memory();
  EXPECT_NEAR(static_cast<double>(freed.rss - before.rss), 0, kTolerance);
  EXPECT_GE(static_cast<double>(freed.peak_rss), static_cast<double>(touched.rss) - kTolerance);
}

TEST(ProcessMemory, TheHighWaterMarkBeginsAnew) {
  constexpr size_t kBytes = 48 * kMiB;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 1, kBytes);
  munmap(pages, kBytes);
  const ProcessMemory high = read_process_memory();
  if (!reset_peak_rss()) GTEST_SKIP() << "the system does not let the mark begin anew";
  const ProcessMemory low = read_process_memory();
  EXPECT_GE(high.peak_rss - low.peak_rss, 40 * kMiB);
  EXPECT_NEAR(static_cast<double>(low.peak_rss), static_cast<double>(low.rss), kTolerance);
}

}  // namespace
}  // namespace quire
