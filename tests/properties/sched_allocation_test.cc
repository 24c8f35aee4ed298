// Planning and committing a step allocates nothing once the sequences of the batch have started.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "quire/sched/scheduler.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace quire::sched {
namespace {

int64_t num_samples(const BatchPlan& plan) {
  int64_t count = 0;
  for (const LogitsUse& use : plan.uses) count += use.kind == LogitsUse::Kind::kSample ? 1 : 0;
  return count;
}

void expect_no_allocation_in_steady_decode(bool prefix_caching) {
  Scheduler scheduler({.max_num_batched_tokens = 256,
                       .max_num_seqs = 24,
                       .max_model_len = 600,
                       .max_logits_rows = 64,
                       .num_blocks = 900,
                       .enable_prefix_caching = prefix_caching});
  std::vector<SampledToken> sampled(24);
  for (RequestId id = 0; id < 20; ++id) {
    Request request{.id = id, .prompt = std::vector<int32_t>(static_cast<size_t>(10 + 7 * id), 3)};
    request.sampling.max_tokens = 400;
    request.n = id == 5 ? 4 : 1;
    ASSERT_FALSE(scheduler.add(std::move(request)));
  }
  int64_t num_tokens = 0;
  int64_t in_steps = 0;
  for (int step = 0; step < 300; ++step) {
    const int64_t before = num_allocations.load();
    const BatchPlan* plan = scheduler.plan();
    ASSERT_NE(plan, nullptr);
    const auto samples = static_cast<size_t>(num_samples(*plan));
    const auto events = scheduler.commit(plan->step, std::span(sampled).first(samples));
    if (step < 20) continue;  // until all have started
    in_steps += num_allocations.load() - before;
    num_tokens += static_cast<int64_t>(events.size());
  }
  EXPECT_EQ(num_tokens, 280 * 23);
  EXPECT_EQ(in_steps, 0);
}

TEST(SchedulerAllocations, NoneInSteadyDecode) {
  expect_no_allocation_in_steady_decode(false);
}

TEST(SchedulerAllocations, NoneWhileBlocksArePublished) {
  expect_no_allocation_in_steady_decode(true);
}

TEST(SchedulerAllocations, AreCounted) {
  const int64_t before = num_allocations.load();
  const auto plan = std::make_unique<BatchPlan>();
  EXPECT_EQ(plan->step, 0);
  EXPECT_GT(num_allocations.load(), before);
}

}  // namespace
}  // namespace quire::sched
