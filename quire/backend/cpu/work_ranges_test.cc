#include "quire/backend/cpu/work_ranges.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

namespace quire::backend::cpu {
namespace {

TEST(EvenStart, CutsIntoContiguousNearlyEqualShares) {
  for (const int64_t items : {0, 1, 2, 7, 60, 1001}) {
    for (const int workers : {1, 2, 3, 8}) {
      EXPECT_EQ(even_start(items, workers, 0), 0);
      EXPECT_EQ(even_start(items, workers, workers), items);
      for (int w = 0; w < workers; ++w) {
        const int64_t share = even_start(items, workers, w + 1) - even_start(items, workers, w);
        EXPECT_GE(share, items / workers);
        EXPECT_LE(share, items / workers + 1);
      }
    }
  }
}

TEST(WorkRanges, EveryItemIsHandedOutOnceAPhase) {
  for (const int workers : {1, 2, 4}) {
    WorkRanges ranges(workers);
    const int phases = 400;
    const uint64_t first = (uint64_t{1} << 28) - 200;  // a word's phases wrap on the way
    ranges.reset(first - 1);
    std::barrier<> barrier(workers);
    std::vector<std::atomic<int>> taken(static_cast<size_t>(phases * 64));
    const auto work = [&](int worker) {
      for (int phase = 0; phase < phases; ++phase) {
        const int64_t items = phase % 64;
        const auto start_of = [&](int w) { return even_start(items, workers, w); };
        while (true) {
          const Portion portion{phase % 5 + 1, phase % 3 == 0 ? 8 : 1000};
          const ItemRange range =
              ranges.take(worker, first + static_cast<uint64_t>(phase), portion, start_of);
          if (range.empty()) break;
          EXPECT_LE(range.size(), portion.most);
          for (int64_t i = range.begin; i < range.end; ++i) ++taken[size_t(phase * 64 + i)];
        }
        barrier.arrive_and_wait();
      }
    };
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker) threads.emplace_back(work, worker);
    for (std::thread& thread : threads) thread.join();
    for (int phase = 0; phase < phases; ++phase) {
      for (int item = 0; item < 64; ++item) {
        ASSERT_EQ(taken[size_t(phase * 64 + item)].load(), item < phase % 64 ? 1 : 0)
            << workers << " workers, phase " << phase << ", item " << item;
      }
    }
  }
}

TEST(WorkRanges, AWorkerThatNeverStartsIsHelped) {
  WorkRanges ranges(2);
  const auto start_of = [](int w) { return even_start(100, 2, w); };
  int64_t taken = 0;
  while (true) {
    const ItemRange range = ranges.take(0, 1, {}, start_of);
    if (range.empty()) break;
    taken += range.size();
  }
  EXPECT_EQ(taken, 100);
  EXPECT_TRUE(ranges.take(1, 1, {}, start_of).empty());
}

TEST(WorkRanges, WhoAsksForAnOldPhaseGetsAndSpoilsNothing) {
  WorkRanges ranges(2);
  const auto start_of = [](int w) { return even_start(100, 2, w); };
  const ItemRange before = ranges.take(0, 7, {}, start_of);
  int64_t taken = before.size();
  for (int i = 0; i < 100; ++i) {
    const ItemRange late = ranges.take(0, 6, {1, 1}, start_of);
    EXPECT_TRUE(late.empty() || late.begin >= 50);  // worker 1's range is still no phase's
    const ItemRange range = ranges.take(0, 7, {}, start_of);
    if (range.empty()) break;
    taken += range.size();
  }
  EXPECT_EQ(taken, 100);
}

}  // namespace
}  // namespace quire::backend::cpu
