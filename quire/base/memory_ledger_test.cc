#include "quire/base/memory_ledger.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "quire/base/huge_buffer.h"

namespace quire {
namespace {

TEST(MemoryLedger, EveryTagHasAName) {
  for (int i = 0; i < kNumMemoryTags; ++i) {
    EXPECT_NE(memory_tag_name(static_cast<MemoryTag>(i)), "?") << i;
  }
  EXPECT_EQ(static_cast<int>(MemoryTag::kOther), kNumMemoryTags - 1);
}

TEST(MemoryLedger, CountsCurrentPeakAllocatedAndFreed) {
  MemoryLedger ledger;
  ledger.add(MemoryTag::kArena, 100);
  ledger.add(MemoryTag::kKvCache, 50);
  ledger.remove(MemoryTag::kArena, 60);
  ledger.add(MemoryTag::kArena, 10);
  const MemorySnapshot now = ledger.snapshot();
  EXPECT_EQ(now[MemoryTag::kArena].current, 50);
  EXPECT_EQ(now[MemoryTag::kArena].peak, 100);
  EXPECT_EQ(now[MemoryTag::kArena].allocated, 110);
  EXPECT_EQ(now[MemoryTag::kArena].freed, 60);
  EXPECT_EQ(now[MemoryTag::kWeights].allocated, 0);
  EXPECT_EQ(now.total.current, 100);
  EXPECT_EQ(now.total.peak, 150);
  EXPECT_EQ(now.total.allocated, 160);
}

TEST(MemoryLedger, PeaksBeginAnew) {
  MemoryLedger ledger;
  ledger.add(MemoryTag::kHttp, 100);
  ledger.remove(MemoryTag::kHttp, 70);
  ledger.reset_peaks();
  EXPECT_EQ(ledger.peak(MemoryTag::kHttp), 30);
  EXPECT_EQ(ledger.snapshot().total.peak, 30);
  ledger.add(MemoryTag::kHttp, 5);
  EXPECT_EQ(ledger.peak(MemoryTag::kHttp), 35);
  EXPECT_EQ(ledger.snapshot()[MemoryTag::kHttp].allocated, 105);
}

TEST(MemoryLedger, ThreadsLoseNothing) {
  MemoryLedger ledger;
  constexpr int kThreads = 4;
  constexpr int kRounds = 20000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ledger] {
      for (int i = 0; i < kRounds; ++i) {
        ledger.add(MemoryTag::kTokenizer, 3);
        ledger.add(MemoryTag::kOther, 2);
        ledger.remove(MemoryTag::kTokenizer, 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MemorySnapshot now = ledger.snapshot();
  EXPECT_EQ(now[MemoryTag::kTokenizer].current, 0);
  EXPECT_EQ(now[MemoryTag::kTokenizer].allocated, int64_t{3} * kThreads * kRounds);
  EXPECT_EQ(now[MemoryTag::kTokenizer].freed, int64_t{3} * kThreads * kRounds);
  EXPECT_GE(now[MemoryTag::kTokenizer].peak, 3);
  EXPECT_LE(now[MemoryTag::kTokenizer].peak, 3 * kThreads);
  EXPECT_EQ(now.total.current, int64_t{2} * kThreads * kRounds);
}

TEST(LedgerEntry, EntersAndLeavesOnce) {
  MemoryLedger ledger;
  {
    LedgerEntry entry(&ledger, MemoryTag::kTokenizer, 10);
    entry.resize(25);
    entry.resize(5);
    EXPECT_EQ(ledger.current(MemoryTag::kTokenizer), 5);
    LedgerEntry moved(std::move(entry));
    EXPECT_EQ(ledger.current(MemoryTag::kTokenizer), 5);
    LedgerEntry other(&ledger, MemoryTag::kHttp, 7);
    other = std::move(moved);
    EXPECT_EQ(ledger.current(MemoryTag::kHttp), 0);
    EXPECT_EQ(other.bytes(), 5);
  }
  EXPECT_EQ(ledger.snapshot().total.current, 0);
  EXPECT_EQ(ledger.snapshot().total.allocated, 25 + 7);
  LedgerEntry none(nullptr, MemoryTag::kHttp, 7);
  EXPECT_EQ(none.bytes(), 7);
}

TEST(HugeBuffer, IsCountedWhileItLives) {
  MemoryLedger ledger;
  {
    HugeBuffer first(3 << 20, MemoryTag::kArena, &ledger);
    HugeBuffer second;
    second = std::move(first);
    EXPECT_EQ(ledger.current(MemoryTag::kArena), 3 << 20);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(second.data()) % (2 << 20), 0U);
    second.data()[(3 << 20) - 1] = std::byte{1};
  }
  EXPECT_EQ(ledger.current(MemoryTag::kArena), 0);
  EXPECT_EQ(ledger.snapshot()[MemoryTag::kArena].freed, 3 << 20);
}

}  // namespace
}  // namespace quire
