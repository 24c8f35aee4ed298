#include "quire/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <numeric>

#include "quire/base/cpu_count.h"

namespace quire {
namespace {

ThreadPool::Options threads(int n) {
  ThreadPool::Options options;
  options.num_threads = n;
  return options;
}

double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(ThreadPool, EveryWorkerRunsOnceARegion) {
  for (const int n : {1, 2, 5}) {
    ThreadPool pool(threads(n));
    EXPECT_EQ(pool.num_workers(), n);
    std::vector<int> calls(static_cast<size_t>(n), 0);  // written by its own worker only
    for (int round = 0; round < 200; ++round) {
      pool.run([&](int worker, int workers) {
        EXPECT_EQ(workers, n);
        ++calls[static_cast<size_t>(worker)];
      });
    }
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(n), 200));
  }
}

TEST(ThreadPool, CallerIsWorkerZero) {
  ThreadPool pool(threads(2));
  const auto self = std::this_thread::get_id();
  pool.run([&](int worker, int) { EXPECT_EQ(worker == 0, std::this_thread::get_id() == self); });
}

TEST(ThreadPool, BarrierPublishesWhatWasWrittenBefore) {
  for (const int n : {2, 4}) {  // 4: more threads than this machine may have
    ThreadPool pool(threads(n));
    std::vector<int64_t> cells(static_cast<size_t>(n), 0);
    std::atomic<int> wrong{0};
    pool.run([&](int worker, int workers) {
      for (int64_t round = 1; round <= 500; ++round) {
        cells[static_cast<size_t>(worker)] = round;
        pool.barrier();
        const int64_t sum = std::accumulate(cells.begin(), cells.end(), int64_t{0});
        if (sum != round * workers) wrong.fetch_add(1);
        pool.barrier();
      }
    });
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(ThreadPool, SleepersWakeForTheNextRegion) {
  ThreadPool::Options options = threads(3);
  options.spin = std::chrono::microseconds(0);  // sleep at once
  ThreadPool pool(options);
  std::atomic<int> calls{0};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pool.run([&](int, int) { calls.fetch_add(1); });
  }
  EXPECT_EQ(calls.load(), 60);
}

TEST(ThreadPool, BarrierWaitersSleepThroughALongStraggler) {
  ThreadPool pool(threads(2));
  const double before = process_cpu_seconds();
  pool.run([&](int worker, int) {
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    pool.barrier();
  });
  EXPECT_LT(process_cpu_seconds() - before, 0.1);
}

TEST(ThreadPool, IdleTakesNoProcessorTime) {
  ThreadPool pool(threads(2));
  pool.run([](int, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = process_cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(process_cpu_seconds() - before, 0.01);
}

TEST(ThreadPool, BindsWorkersWhereAsked) {
  const std::vector<int> cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  std::thread([&] {  // a thread of its own, since worker 0 is bound too
    ThreadPool::Options options = threads(2);
    options.cpus = {cpus.back(), cpus.front()};
    ThreadPool pool(options);
    pool.run([&](int worker, int) {
      EXPECT_EQ(sched_getcpu(), worker == 0 ? cpus.back() : cpus.front());
    });
  })
      .join();
}

}  // namespace
}  // namespace quire
