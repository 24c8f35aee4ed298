#include "quire/backend/cpu/work_ranges.h"

#include <gtest/gtest.h>

#include <thread>

#include "quire/base/thread_pool.h"

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
    ThreadPool::Options options;
    options.num_threads = workers;
    ThreadPool pool(options);
    WorkRanges ranges(workers);
    const int phases = 400;
    std::vector<std::atomic<int>> taken(static_cast<size_t>(phases * 64));
    pool.run([&](int worker, int n) {
      for (int phase = 0; phase < phases; ++phase) {
        const int64_t items = phase % 64;
        const auto start_of = [&](int w) { return even_start(items, n, w); };
        while (true) {
          // Numbers near the wrap of the 16 bits that a word keeps.
          const ItemRange range =
              ranges.take(worker, static_cast<uint32_t>(phase) + 65400u, phase % 5 + 1, start_of);
          if (range.begin == range.end) break;
          for (int64_t i = range.begin; i < range.end; ++i) ++taken[size_t(phase * 64 + i)];
        }
        pool.barrier();
      }
    });
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
    const ItemRange range = ranges.take(0, 1, 1, start_of);
    if (range.begin == range.end) break;
    taken += range.end - range.begin;
  }
  EXPECT_EQ(taken, 100);
  const ItemRange late = ranges.take(1, 1, 1, start_of);
  EXPECT_EQ(late.begin, late.end);
}

}  // namespace
}  // namespace quire::backend::cpu
