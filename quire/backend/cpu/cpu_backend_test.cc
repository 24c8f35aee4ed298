#include "quire/backend/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "quire/backend/cpu/testing/tiny_llama.h"
#include "quire/base/error.h"

namespace {
std::atomic<int64_t> allocations{0};  // by operator new, anywhere in this program
}  // namespace

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUIRE_TEST_OWN_NEW 0  // the sanitizer's cannot be replaced
#endif
#endif
#ifndef QUIRE_TEST_OWN_NEW
#define QUIRE_TEST_OWN_NEW 1
[[gnu::noinline]] void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}
#endif

namespace quire::backend::cpu {
namespace {

using Logits = std::vector<float>;

CpuBackend::Options options(int threads, Level level = detect_level()) {
  CpuBackend::Options out;
  out.num_threads = threads;
  out.level = level;
  return out;
}

std::vector<int32_t> prompt(int32_t length, uint32_t seed = 5) {
  std::mt19937 generator(seed);
  std::vector<int32_t> out(static_cast<size_t>(length));
  for (int32_t& token : out) token = static_cast<int32_t>(generator() % 50);
  return out;
}

std::vector<int32_t> part(const std::vector<int32_t>& tokens, int32_t begin, int32_t end) {
  return {tokens.begin() + begin, tokens.begin() + end};
}

double relative_error(const Logits& got, const std::vector<double>& want) {
  double worst = 0;
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

/// Weight layouts and activation types as a server would combine them, with bf16 pages.
std::vector<TinyConfig> served_configs() {
  TinyConfig fp32;
  TinyConfig bf16;
  bf16.dtype = DType::kBF16;
  bf16.act = ActType::kBF16;
  bf16.kv_dtype = DType::kBF16;
  TinyConfig int4 = bf16;
  int4.layout = Layout::kInt4Group;
  int4.act = ActType::kI8;
  TinyConfig int8 = int4;
  int8.layout = Layout::kInt8Group;
  int8.block_tokens = 32;
  int8.window = 20;
  TinyConfig capped = int4;  // heads of 24: pages are padded to 32
  capped.head_dim = 24;
  capped.heads = 8;  // 192 inputs: whole groups
  capped.soft_cap = 1.5f;
  capped.kv_dtype = DType::kF16;
  return {fp32, bf16, int4, int8, capped};
}

TEST(CpuBackend, EqualsTheModelInDoubleAtEveryLevel) {
  for (TinyConfig config : served_configs()) {
    config.act = ActType::kF32;
    config.kv_dtype = DType::kF32;
    for (const Level level : available_levels()) {
      CpuBackend backend(options(2, level));
      const TinyLlama model(config, backend);
      TinyDriver driver(backend, model);
      const std::vector<int32_t> tokens = prompt(40);
      EXPECT_LT(relative_error(driver.step({{0, part(tokens, 0, 37)}})[0],
                               model.exact(part(tokens, 0, 37))),
                2e-5);
      Logits last;
      for (int32_t t = 37; t < 40; ++t) last = driver.step({{0, part(tokens, t, t + 1)}})[0];
      EXPECT_LT(relative_error(last, model.exact(tokens)), 2e-5) << level_name(level);
      EXPECT_GT(relative_error(last, model.exact(tokens, false)), 2e-3) << "RoPE is not tested";
    }
  }
}

TEST(CpuBackend, NarrowActivationsStayNear) {
  for (const TinyConfig& config : served_configs()) {
    CpuBackend backend(options(2));
    const TinyLlama model(config, backend);
    TinyDriver driver(backend, model);
    const std::vector<int32_t> tokens = prompt(40);
    EXPECT_LT(relative_error(driver.step({{0, tokens}})[0], model.exact(tokens)), 0.05);
  }
}

/// Logits after `tokens`, computed in chunks of the given sizes (the last one repeated).
Logits in_chunks(TinyDriver& driver, const std::vector<int32_t>& tokens,
                 const std::vector<int32_t>& chunks, int sequence = 0) {
  Logits out;
  int32_t at = 0;
  for (size_t i = 0; at < static_cast<int32_t>(tokens.size()); ++i) {
    const int32_t size = chunks[std::min(i, chunks.size() - 1)];
    const int32_t end = std::min(at + size, static_cast<int32_t>(tokens.size()));
    out = driver.step({{sequence, part(tokens, at, end)}})[0];
    at = end;
  }
  return out;
}

TEST(CpuBackend, ChunksThreadsAndPlacementChangeNoBit) {
  struct Run {
    int threads;
    std::vector<int32_t> chunks;
  };
  const std::vector<Run> runs = {{1, {45}}, {1, {1}}, {2, {45}}, {2, {7, 20, 2, 1, 15}}, {3, {16}}};
  for (const TinyConfig& config : served_configs()) {
    for (const Level level : available_levels()) {
      const std::vector<int32_t> tokens = prompt(45);
      Logits reference;
      for (const Run& run : runs) {
        CpuBackend backend(options(run.threads, level));
        const TinyLlama model(config, backend);
        TinyDriver driver(backend, model, static_cast<uint32_t>(run.threads));
        const Logits got = in_chunks(driver, tokens, run.chunks);
        if (reference.empty()) reference = got;
        ASSERT_TRUE(same_bits(reference, got))
            << level_name(level) << " " << run.threads << " threads, chunks of " << run.chunks[0];
      }
    }
  }
}

TEST(CpuBackend, NeighboursChangeNoBit) {
  for (const TinyConfig& config : served_configs()) {
    CpuBackend backend(options(2));
    const TinyLlama model(config, backend);
    std::vector<std::vector<int32_t>> prompts;
    std::vector<Logits> alone;
    for (uint32_t i = 0; i < 5; ++i) {
      prompts.push_back(prompt(static_cast<int32_t>(3 + 7 * i), 10 + i));
      TinyDriver driver(backend, model);
      alone.push_back(in_chunks(driver, prompts[i], {100}));
    }
    TinyDriver driver(backend, model, 9);
    // The first two decode one token at a time beside the others' prefill.
    driver.step({{0, part(prompts[0], 0, 2)}, {1, part(prompts[1], 0, 9)}});
    const std::vector<Logits> together = driver.step({{0, part(prompts[0], 2, 3)},
                                                      {2, prompts[2]},
                                                      {1, part(prompts[1], 9, 10)},
                                                      {3, prompts[3]},
                                                      {4, prompts[4]}});
    const int order[] = {0, 2, 1, 3, 4};
    for (size_t r = 0; r < 5; ++r) {
      EXPECT_TRUE(same_bits(alone[static_cast<size_t>(order[r])], together[r])) << r;
    }
  }
}

TEST(CpuBackend, LongContextsSharedOutOverSplitsKeepTheirBits) {
  TinyConfig config = served_configs()[2];
  config.layers = 1;
  config.num_blocks = 130;
  config.max_tokens = 2048;
  for (const int32_t window : {0, 700}) {
    config.window = window;
    const std::vector<int32_t> tokens = prompt(2000);
    std::vector<Logits> results;
    for (const int threads : {1, 2}) {  // one thread folds in place, two share splits
      CpuBackend backend(options(threads));
      const TinyLlama model(config, backend);
      TinyDriver driver(backend, model);
      driver.step({{0, part(tokens, 0, 1990)}});
      results.push_back(in_chunks(driver, part(tokens, 1990, 2000), {1}));
    }
    EXPECT_TRUE(same_bits(results[0], results[1])) << window;
  }
}

TEST(CpuBackend, CopiedBlocksLetSequencesPart) {
  for (const TinyConfig& config : served_configs()) {
    CpuBackend backend(options(2));
    const TinyLlama model(config, backend);
    TinyDriver driver(backend, model);
    const std::vector<int32_t> shared = prompt(37);
    driver.step({{0, shared}});
    driver.fork(0, 1);
    const std::vector<Logits> got = driver.step({{0, {1, 2}}, {1, {3, 4}}});
    for (const auto& [row, tail] : {std::pair{0u, std::vector{1, 2}}, {1u, std::vector{3, 4}}}) {
      std::vector<int32_t> whole = shared;
      whole.insert(whole.end(), tail.begin(), tail.end());
      TinyDriver fresh(backend, model);
      EXPECT_TRUE(same_bits(in_chunks(fresh, whole, {100}), got[row]));
    }
  }
}

TEST(CpuBackend, SwappedBlocksComeBackTheSameElsewhere) {
  for (const TinyConfig& config : served_configs()) {
    const std::vector<int32_t> tokens = prompt(60);
    Logits results[2];
    for (const bool swapped : {false, true}) {
      CpuBackend backend(options(3));
      const TinyLlama model(config, backend);
      TinyDriver driver(backend, model);
      driver.step({{0, part(tokens, 0, 41)}});  // the last block in part
      if (swapped) driver.swap_out_and_in(0);
      results[swapped] = in_chunks(driver, part(tokens, 41, 60), {1});
    }
    EXPECT_TRUE(same_bits(results[0], results[1]));
  }
}

TEST(CpuBackend, ReusedBlocksKeepNothing) {
  const TinyConfig config = served_configs()[1];
  CpuBackend backend(options(2));
  const TinyLlama model(config, backend);
  TinyDriver driver(backend, model);
  const Logits first = in_chunks(driver, prompt(20), {20});
  for (const float x : first) ASSERT_TRUE(std::isfinite(x));  // pages began as NaN
}

TEST(CpuBackend, AStepAllocatesNothing) {
  if (QUIRE_TEST_OWN_NEW == 0) GTEST_SKIP() << "allocations can't be counted in this build";
  for (const TinyConfig& config : served_configs()) {
    CpuBackend backend(options(2));
    const TinyLlama model(config, backend);
    TinyDriver driver(backend, model);
    driver.step({{0, prompt(20)}, {1, prompt(3)}, {2, {1}}});  // warm-up
    const int64_t before = allocations.load();
    driver.repeat();
    EXPECT_EQ(allocations.load(), before);
    const auto one = std::make_unique<int>(1);
    EXPECT_EQ(allocations.load(), before + 1) << "allocations are not counted";
  }
}

TEST(CpuBackend, ParallelReachesEveryWorker) {
  CpuBackend backend(options(3));
  std::vector<int> calls(3, 0);
  backend.parallel([&](int worker, int n) {
    EXPECT_EQ(n, 3);
    ++calls[static_cast<size_t>(worker)];
  });
  EXPECT_EQ(calls, std::vector<int>(3, 1));
}

TEST(CpuBackend, PackErrorsReachTheCaller) {
  class Failing : public RandomReader {
   public:
    using RandomReader::RandomReader;
    void read(int64_t begin, int64_t count, WeightRows& rows) const override {
      if (begin > 100) throw LoadError("model.gguf", "truncated");
      RandomReader::read(begin, count, rows);
    }
  };
  CpuBackend backend(options(2));
  EXPECT_THROW(backend.pack(Failing(TinyConfig{}, 64, 512, 1)), LoadError);
}

TEST(CpuBackend, TimesEveryPhase) {
  CpuBackend::Options timed = options(2);
  timed.time_ops = true;
  CpuBackend backend(timed);
  const TinyLlama model(TinyConfig{}, backend);
  TinyDriver driver(backend, model);
  driver.step({{0, prompt(20)}});
  driver.step({{0, {1}}});
  int32_t next = 0;
  for (const PhaseTime& time : backend.op_times()) {
    EXPECT_EQ(time.phase.first_op, next);  // phases cover the program
    next = time.phase.last_op;
    EXPECT_EQ(time.steps, 2);
    EXPECT_GT(time.nanoseconds, 0);
  }
  EXPECT_EQ(next, static_cast<int32_t>(driver.program().ops.size()));
  EXPECT_THAT(backend.op_times_table(), testing::HasSubstr("attention"));
}

TEST(CpuBackend, ProfilesEveryOperationOfAStep) {
  CpuBackend::Options profiled = options(2);
  profiled.profile_steps = true;
  CpuBackend backend(profiled);
  const TinyLlama model(TinyConfig{}, backend);
  TinyDriver driver(backend, model);
  for (const auto& tokens : {prompt(20), std::vector<int32_t>{1}}) {
    driver.step({{0, tokens}});
    const StepProfile& profile = backend.last_step();
    const std::vector<Phase>& phases = backend.phases();
    ASSERT_EQ(profile.op_ns.size(), driver.program().ops.size());
    ASSERT_EQ(profile.phases.size(), phases.size());
    int64_t last_end = profile.step.begin_ns;
    for (size_t i = 0; i < phases.size(); ++i) {
      const TimeSpan& phase = profile.phases[i];
      EXPECT_GE(phase.begin_ns, last_end);
      EXPECT_GT(phase.duration(), 0);
      last_end = phase.end_ns;
      int64_t in_operations = 0;
      for (int32_t op = phases[i].first_op; op < phases[i].last_op; ++op) {
        EXPECT_GE(profile.op_ns[static_cast<size_t>(op)], 0);
        in_operations += profile.op_ns[static_cast<size_t>(op)];
      }
      EXPECT_EQ(in_operations, phase.duration());
      for (int worker = 0; worker < 2; ++worker) {
        const TimeSpan& work = profile.work_of(i, worker);
        EXPECT_LE(profile.step.begin_ns, work.begin_ns);
        EXPECT_LE(work.begin_ns, work.end_ns);
        EXPECT_LE(work.end_ns, phase.end_ns);
      }
    }
    EXPECT_LE(last_end, profile.step.end_ns);
  }
}

TEST(CpuBackend, ProfilingChangesNoBit) {
  CpuBackend::Options profiled = options(2);
  profiled.profile_steps = true;
  CpuBackend timed(profiled);
  CpuBackend plain(options(2));
  const TinyLlama timed_model(TinyConfig{}, timed);
  const TinyLlama plain_model(TinyConfig{}, plain);
  TinyDriver timed_driver(timed, timed_model);
  TinyDriver plain_driver(plain, plain_model);
  EXPECT_EQ(timed_driver.step({{0, prompt(20)}}), plain_driver.step({{0, prompt(20)}}));
}

TEST(CpuBackend, SaysWhatItCannotRun) {
  TinyConfig config;
  config.head_dim = 17;
  config.heads = 2;
  CpuBackend backend(options(1));
  const TinyLlama model(config, backend);
  try {
    const TinyDriver driver(backend, model);
    FAIL() << "loaded heads of 17 dimensions";
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("odd dimension"));
  }
}

TEST(CpuBackend, CountsItsMemory) {
  MemoryLedger ledger;
  CpuBackend::Options counted = options(2);
  counted.ledger = &ledger;
  CpuBackend backend(counted);
  const TinyLlama model(TinyConfig{}, backend);
  EXPECT_GT(ledger.current(MemoryTag::kWeights), 0);
  const TinyDriver driver(backend, model);
  EXPECT_EQ(ledger.current(MemoryTag::kArena),
            driver.program().arena_bytes + backend.scratch_bytes(driver.program()));
  EXPECT_EQ(ledger.current(MemoryTag::kWorkerScratch), backend.worker_scratch_bytes());
  EXPECT_EQ(backend.worker_scratch_bytes(), 2 * (int64_t{4} << 20));
}

}  // namespace
}  // namespace quire::backend::cpu
