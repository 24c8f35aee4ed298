// Workers that lose their processor in the middle of their work: others finish the step without
// them, with the same bits, and what they do when they come back changes nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/cpu/testing/tiny_llama.h"
#include "quire/backend/cpu/walker.h"

namespace quire::backend::cpu {
namespace {

using Logits = std::vector<float>;
using Clock = std::chrono::steady_clock;

TinyConfig config_of(Layout layout) {
  TinyConfig config;
  config.dtype = DType::kBF16;
  config.layout = layout;
  config.act = layout == Layout::kDense ? ActType::kBF16 : ActType::kI8;
  config.kv_dtype = DType::kBF16;
  return config;
}

CpuBackend::Options on_threads(int threads) {
  CpuBackend::Options options;
  options.num_threads = threads;
  return options;
}

std::vector<int32_t> tokens_of(uint32_t seed, int32_t length) {
  std::mt19937 generator(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(length));
  for (int32_t& token : tokens) token = static_cast<int32_t>(generator() % 50);
  return tokens;
}

/// Logits of some mixed steps: prompts beside decoding sequences.
std::vector<Logits> some_steps(TinyDriver& driver) {
  std::vector<Logits> all;
  const auto step = [&](const std::vector<TinyDriver::Row>& rows) {
    for (Logits& row : driver.step(rows)) all.push_back(std::move(row));
  };
  step({{0, tokens_of(1, 17)}, {1, tokens_of(2, 40)}});
  for (int i = 0; i < 6; ++i) step({{0, {i + 1}}, {1, {i + 5}}});
  step({{0, {3}}, {2, tokens_of(3, 50)}, {1, {4}}});
  for (int i = 0; i < 6; ++i) step({{2, {i + 1}}, {1, {i + 5}}, {0, {i}}});
  return all;
}

std::vector<Logits> steps_alone(const TinyConfig& config) {
  CpuBackend backend(on_threads(1));
  const TinyLlama model(config, backend);
  TinyDriver driver(backend, model);
  return some_steps(driver);
}

bool same_bits(const std::vector<Logits>& a, const std::vector<Logits>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * 4) != 0) return false;
  }
  return true;
}

TEST(Rescue, StalledWorkersChangeNoBit) {
  for (const Layout layout : {Layout::kDense, Layout::kInt4Group}) {
    const TinyConfig config = config_of(layout);
    const std::vector<Logits> expected = steps_alone(config);
    for (uint32_t seed = 0; seed < 4; ++seed) {
      std::atomic<uint32_t> calls{seed * 977};
      CpuBackend::Options options = on_threads(2 + static_cast<int>(seed % 3));
      options.on_claim = [&](int worker, bool /*opened*/) {
        // One worker is stopped now and then, for longer than several phases or steps.
        const auto draw = static_cast<uint32_t>(std::minstd_rand(calls++)() >> 8);
        if (worker != static_cast<int>(seed % 2) || draw % 16 != 0) return;
        std::this_thread::sleep_for(std::chrono::microseconds(draw / 16 % 4000));
      };
      CpuBackend backend(options);
      const TinyLlama model(config, backend);
      TinyDriver driver(backend, model);
      EXPECT_TRUE(same_bits(expected, some_steps(driver))) << "seed " << seed;
    }
  }
}

/// Stops worker 1 in its `stop_at`-th claim until worker 0 has opened `claims` more, and then
/// worker 0 until worker 1 has finished the old claim: what that writes now meets another phase.
class LateReturn {
 public:
  LateReturn(int stop_at, int claims) : stop_at_(stop_at), claims_(claims) {}

  void on_claim(int worker, bool opened) {
    if (worker == 1 && opened && stage_ == kRunning && stop_at_-- == 0) {
      stage_ = kStopped;
      wait_while(kStopped);
    } else if (worker == 1 && !opened && stage_ == kReturning) {
      stage_ = kReturned;
    } else if (worker == 0 && opened && stage_ == kStopped && claims_-- == 0) {
      stage_ = kReturning;
      wait_while(kReturning);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  /// True when all of it took place.
  bool end() { return stage_.exchange(kEnded) == kReturned; }

 private:
  enum Stage { kRunning, kStopped, kReturning, kReturned, kEnded };

  void wait_while(Stage stage) const {
    while (stage_ == stage) std::this_thread::yield();
  }

  int stop_at_;
  int claims_;
  std::atomic<Stage> stage_{kRunning};
};

TEST(Rescue, WhatALateWorkerDoesIsDropped) {
  if (!Walker::kRescues) GTEST_SKIP() << "no rescues under the thread sanitizer";
  const TinyConfig config = config_of(Layout::kInt4Group);
  const std::vector<Logits> expected = steps_alone(config);
  int played = 0;
  int64_t rescues = 0;  // not in every run: worker 0 may have had work left in the same phase
  for (int stop_at = 0; stop_at < 30; ++stop_at) {
    LateReturn script(stop_at, 3 * stop_at % 13);
    CpuBackend::Options options = on_threads(2);
    options.on_claim = [&](int worker, bool opened) { script.on_claim(worker, opened); };
    CpuBackend backend(options);
    const TinyLlama model(config, backend);
    TinyDriver driver(backend, model);
    EXPECT_TRUE(same_bits(expected, some_steps(driver))) << "stopped at " << stop_at;
    if (!script.end()) continue;
    ++played;
    rescues += backend.num_rescues();
  }
  EXPECT_GT(played, 0) << "worker 1 never had anything to do";
  EXPECT_GT(rescues, 0);
}

TEST(Rescue, AStepDoesNotWaitForAStoppedWorker) {
  if (!Walker::kRescues) GTEST_SKIP() << "no rescues under the thread sanitizer";
  const TinyConfig config = config_of(Layout::kInt4Group);
  std::atomic<bool> stop{false};
  std::atomic<bool> stopped{false};
  std::atomic<bool> release{false};
  CpuBackend::Options options = on_threads(2);
  options.on_claim = [&](int worker, bool /*opened*/) {
    if (worker != 1 || !stop.exchange(false)) return;
    stopped = true;
    while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  CpuBackend alone(on_threads(1));
  const TinyLlama alone_model(config, alone);
  TinyDriver expected(alone, alone_model);
  CpuBackend backend(options);
  const TinyLlama model(config, backend);
  TinyDriver driver(backend, model);
  const auto step = [&](const std::vector<int32_t>& tokens) {
    EXPECT_EQ(expected.step({{0, tokens}}), driver.step({{0, tokens}}));
  };
  step(tokens_of(4, 9));
  // Worker 0 may do all of a step before worker 1 wakes up: step until it was caught.
  stop = true;
  for (int i = 0; i < 500 && !stopped; ++i) step({i % 50});
  ASSERT_TRUE(stopped) << "worker 1 never had anything to do";
  for (int i = 0; i < 20; ++i) step({i});  // would never return if it waited
  EXPECT_GT(backend.num_rescues(), 0);
  release = true;
  for (int i = 0; i < 20; ++i) step({i + 20});
}

}  // namespace
}  // namespace quire::backend::cpu
