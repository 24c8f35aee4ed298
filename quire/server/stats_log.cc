#include "quire/server/stats_log.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "quire/base/log.h"

namespace quire::server {

std::string stats_line(const engine::EngineStats& before, const engine::EngineStats& now,
                       std::chrono::duration<double> elapsed) {
  const auto rate = [&](int64_t from, int64_t to) {
    return elapsed.count() > 0 ? static_cast<double>(to - from) / elapsed.count() : 0.0;
  };
  const int64_t queries = now.prefix_cache_queries - before.prefix_cache_queries;
  const int64_t hits = now.prefix_cache_hits - before.prefix_cache_hits;
  std::string line = fmt::format(
      "prompt {:.1f} tok/s, generation {:.1f} tok/s, running {}, waiting {}, KV cache {:.1f} %",
      rate(before.prompt_tokens, now.prompt_tokens),
      rate(before.generation_tokens, now.generation_tokens), now.num_running, now.num_waiting,
      100 * now.kv_cache_usage);
  if (queries > 0) {
    line += fmt::format(", prefix hits {:.1f} %",
                        100 * static_cast<double>(hits) / static_cast<double>(queries));
  }
  if (const int64_t preempted = now.num_preemptions - before.num_preemptions; preempted > 0) {
    line += fmt::format(", {} preemptions", preempted);
  }
  const int64_t out = now.swap.blocks_out - before.swap.blocks_out;
  const int64_t in = now.swap.blocks_in - before.swap.blocks_in;
  if (out + in > 0 || now.swap_usage > 0) {
    line += fmt::format(", swap {:.1f} % ({} blocks out, {} in)", 100 * now.swap_usage, out, in);
  }
  return line;
}

struct StatsLog::Impl {
  explicit Impl(Options given) : options(std::move(given)) {
    if (!options.write) options.write = [](const std::string& line) { log_info("{}", line); };
    told = options.read_stats();
    thread = std::thread([this] { run(); });
  }

  void run() {
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(mutex);
    while (!stopped) {
      changed.wait(lock, [this] { return stopped || active; });
      const Clock::time_point begin = Clock::now();
      changed.wait_for(lock, options.interval, [this] { return stopped; });
      active = false;  // before the reading: a step behind it counts for the next interval
      lock.unlock();
      const engine::EngineStats now = options.read_stats();
      const bool is_news = now.num_steps != told.num_steps;
      if (is_news) options.write(stats_line(told, now, Clock::now() - begin));
      told = now;
      lock.lock();
      // The last step's numbers may not have been out yet.
      if (now.num_running + now.num_waiting > 0) active = true;
    }
  }

  Options options;
  engine::EngineStats told;  // as of the last line
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> active{false};  // there was a step since the last line; set under the mutex
  bool stopped = false;
  std::thread thread;  // the last: it uses all of the above
};

StatsLog::StatsLog(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}

StatsLog::~StatsLog() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

void StatsLog::observe_step() {
  if (impl_->active.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->active = true;
  }
  impl_->changed.notify_all();
}

}  // namespace quire::server
