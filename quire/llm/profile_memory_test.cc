#include "quire/llm/profile_memory.h"

#include <sys/mman.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "quire/base/huge_buffer.h"

namespace quire::llm {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBytes = 64 * kMiB;
// A few pages: the kernel adds them to a process's counters in batches.
constexpr double kTolerance = 0.5 * kMiB;

class Pages {
 public:
  Pages()
      : data_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(data_, MAP_FAILED);
    std::memset(data_, 1, kBytes);
  }
  ~Pages() { munmap(data_, kBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

 private:
  void* data_;
};

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void expect_touched_and_freed(bool sample_only) {
  const MemoryProfile profile = profile_memory(
      [] {
        const Pages pages;
        pause();
      },
      {.out = nullptr, .sample_only = sample_only});
  EXPECT_EQ(profile.peak_is_exact && sample_only, false);
  EXPECT_NEAR(static_cast<double>(profile.increase()), 0, kTolerance);
  EXPECT_NEAR(static_cast<double>(profile.peak_increase()), kBytes, kTolerance);
}

TEST(ProfileMemory, SeesWhatWasTouchedAndFreed) {
  profile_memory([] {}, {.out = nullptr});  // the first call's own code and stacks
  if (read_process_memory().rss == 0) GTEST_SKIP() << "no /proc here";
  expect_touched_and_freed(false);
}

TEST(ProfileMemory, SeesItWithoutTheKernelsMark) {
  profile_memory([] {}, {.out = nullptr, .sample_only = true});
  if (read_process_memory().rss == 0) GTEST_SKIP() << "no /proc here";
  expect_touched_and_freed(true);
}

TEST(ProfileMemory, SeesWhatStays) {
  if (read_process_memory().rss == 0) GTEST_SKIP() << "no /proc here";
  std::unique_ptr<Pages> pages;
  const MemoryProfile profile =
      profile_memory([&] { pages = std::make_unique<Pages>(); }, {.out = nullptr});
  EXPECT_NEAR(static_cast<double>(profile.increase()), kBytes, kTolerance);
  EXPECT_NEAR(static_cast<double>(profile.peak_increase()), kBytes, kTolerance);
}

TEST(ProfileMemory, AnEarlierPeakDoesNotCount) {
  { const Pages pages; }
  const MemoryProfile profile = profile_memory([] {}, {.out = nullptr});
  if (!profile.peak_is_exact) GTEST_SKIP() << "the system does not let the mark begin anew";
  EXPECT_NEAR(static_cast<double>(profile.peak_increase()), 0, kTolerance);
}

TEST(ProfileMemory, CountsTheLedgerAndPrintsTheSummary) {
  MemoryLedger ledger;
  HugeBuffer weights(3 * kMiB, MemoryTag::kWeights, &ledger);
  std::FILE* out = std::tmpfile();
  ASSERT_NE(out, nullptr);
  const MemoryProfile profile = profile_memory(
      [&] {
        const HugeBuffer arena(5 * kMiB, MemoryTag::kArena, &ledger);
        arena.data()[0] = std::byte{1};
      },
      {.name = "a step", .ledger = &ledger, .out = out});
  EXPECT_EQ(profile.before.ledger.total.current, 3 * kMiB);
  EXPECT_EQ(profile.after.ledger.total.current, 3 * kMiB);
  EXPECT_EQ(profile.after.ledger.total.peak, 8 * kMiB);
  EXPECT_EQ(profile.after.ledger[MemoryTag::kArena].freed, 5 * kMiB);
  std::rewind(out);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  for (const char* part :
       {"a step", "before", "after", "increase", "peak", "resident (RSS)", "huge pages", "PSS",
        "weights", "3.00 MiB", "arena", "5.00 MiB", "allocated", "freed", "total", "8.00 MiB"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;
  }
  EXPECT_EQ(text.find("tokenizer"), std::string::npos) << "a tag that was never used:\n" << text;
}

TEST(ProfileMemory, ThrowsOnWhatTheFunctionThrows) {
  for (const bool sample_only : {false, true}) {
    EXPECT_THROW(profile_memory([] { throw std::runtime_error("no"); },
                                {.out = nullptr, .sample_only = sample_only}),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace quire::llm
