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

TEST(ThreadPool, PartZeroRunsHere) {
  ThreadPool pool(threads(2));
  const auto self = std::this_thread::get_id();
  pool.run([&](int part, int) { EXPECT_TRUE(part != 0 || std::this_thread::get_id() == self); });
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

TEST(ThreadPool, IdleTakesNoProcessorTime) {
  ThreadPool pool(threads(2));
  pool.run([](int, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = process_cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(process_cpu_seconds() - before, 0.01);
}

TEST(ThreadPool, PartsOfAbsentWorkersRunHere) {
  ThreadPool pool(threads(2));
  std::atomic<bool> release{false};
  struct Crew {
    std::atomic<bool>& release;
    std::atomic<bool> inside{false};
    void operator()(int worker) {
      if (worker == 1) {
        inside = true;
        while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } else {
        while (!inside) std::this_thread::yield();
      }
    }
  } crew{release};
  pool.lead(crew);  // returns, and leaves worker 1 inside
  for (int round = 0; round < 50; ++round) {
    std::vector<int> calls(2, 0);
    const auto self = std::this_thread::get_id();
    pool.run([&](int part, int) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      ++calls[static_cast<size_t>(part)];
    });
    EXPECT_EQ(calls, std::vector<int>(2, 1));
  }
  release = true;
  pool.settle();
  // The worker is back, and missed nothing that it should have run.
  std::atomic<int> calls{0};
  for (int round = 0; round < 50; ++round) pool.run([&](int, int) { ++calls; });
  EXPECT_EQ(calls.load(), 100);
}

TEST(ThreadPool, WorkersComeToLedRegions) {
  ThreadPool pool(threads(3));
  struct Crew {
    std::atomic<int> inside{0};
    void operator()(int worker) {
      ++inside;
      while (worker == 0 && inside < 3) std::this_thread::yield();
    }
  };
  for (int round = 0; round < 50; ++round) {
    Crew crew;
    pool.lead(crew);  // would hang if a worker stayed away
    pool.settle();
    EXPECT_EQ(crew.inside.load(), 3);
  }
}

TEST(ThreadPool, AWaitForAStragglerSleeps) {
  ThreadPool pool(threads(2));
  const double before = process_cpu_seconds();
  std::atomic<bool> begun{false};
  pool.run([&](int part, int) {
    if (part == 1) begun = true;
    while (!begun) std::this_thread::yield();  // worker 1's part is not run here
    if (part == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  EXPECT_LT(process_cpu_seconds() - before, 0.1);
}

TEST(ThreadPool, BindsWorkersWhereAsked) {
  const std::vector<int> cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  std::thread([&] {  // a thread of its own, since worker 0 is bound too
    ThreadPool::Options options = threads(2);
    options.cpus = {cpus.back(), cpus.front()};
    ThreadPool pool(options);
    struct Crew {
      const std::vector<int>& cpus;
      std::atomic<int> inside{0};
      void operator()(int worker) {
        EXPECT_EQ(sched_getcpu(), worker == 0 ? cpus.back() : cpus.front());
        ++inside;
        while (worker == 0 && inside < 2) std::this_thread::yield();
      }
    } crew{cpus};
    const std::vector<int> before = allowed_cpus();
    pool.run([](int, int) {});
    EXPECT_EQ(allowed_cpus(), before);  // packing weights binds nobody
    pool.lead(crew);
    EXPECT_EQ(allowed_cpus(), std::vector<int>{cpus.back()});
    pool.settle();
  })
      .join();
}

}  // namespace
}  // namespace quire
