#include "quire/server/stats_log.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace quire::server {
namespace {

using namespace std::chrono_literals;

TEST(StatsLine, RatesAreOfTheIntervalAndGaugesOfNow) {
  engine::EngineStats before;
  before.prompt_tokens = 100;
  before.generation_tokens = 10;
  before.prefix_cache_queries = 1000;
  before.prefix_cache_hits = 1000;
  engine::EngineStats now = before;
  now.prompt_tokens = 600;
  now.generation_tokens = 35;
  now.num_running = 3;
  now.num_waiting = 7;
  now.kv_cache_usage = 0.125;
  EXPECT_EQ(stats_line(before, now, 10s),
            "prompt 50.0 tok/s, generation 2.5 tok/s, running 3, waiting 7, KV cache 12.5 %");
  now.prefix_cache_queries += 200;
  now.prefix_cache_hits += 50;
  now.num_preemptions = 2;
  EXPECT_EQ(stats_line(before, now, 5s),
            "prompt 100.0 tok/s, generation 5.0 tok/s, running 3, waiting 7, KV cache 12.5 %, "
            "prefix hits 25.0 %, 2 preemptions");
  now = before;
  now.swap = {.blocks_out = 12, .blocks_in = 3};
  now.swap_usage = 0.25;
  EXPECT_EQ(stats_line(before, now, 5s),
            "prompt 0.0 tok/s, generation 0.0 tok/s, running 0, waiting 0, KV cache 0.0 %, "
            "swap 25.0 % (12 blocks out, 3 in)");
}

class StatsLogTest : public testing::Test {
 protected:
  StatsLog::Options options(std::chrono::milliseconds interval) {
    return {.interval = interval,
            .read_stats =
                [this] {
                  const std::lock_guard lock(mutex_);
                  ++num_reads_;
                  return stats_;
                },
            .write =
                [this](const std::string& line) {
                  const std::lock_guard lock(mutex_);
                  lines_.push_back(line);
                }};
  }
  void step(StatsLog& log) {
    {
      const std::lock_guard lock(mutex_);
      ++stats_.num_steps;
    }
    log.observe_step();
  }
  size_t num_lines() {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }
  bool eventually_lines(size_t count) {
    for (int i = 0; i < 500 && num_lines() < count; ++i) std::this_thread::sleep_for(10ms);
    return num_lines() == count;
  }

  std::mutex mutex_;
  engine::EngineStats stats_;
  std::vector<std::string> lines_;
  int num_reads_ = 0;
};

TEST_F(StatsLogTest, SpeaksOnceAnIntervalWithStepsAndSleepsOtherwise) {
  StatsLog log(options(20ms));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(num_lines(), 0U);
  for (int i = 0; i < 5; ++i) step(log);
  EXPECT_TRUE(eventually_lines(1));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(num_lines(), 1U);
  {
    const std::lock_guard lock(mutex_);
    EXPECT_LE(num_reads_, 3);  // it does not poll
  }
  step(log);
  EXPECT_TRUE(eventually_lines(2));
}

TEST_F(StatsLogTest, EndsAtOnceAndTellsTheRest) {
  const auto start = std::chrono::steady_clock::now();
  {
    StatsLog log(options(1h));
    step(log);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_EQ(num_lines(), 1U);
}

}  // namespace
}  // namespace quire::server
