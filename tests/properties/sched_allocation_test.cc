// Planning and committing a step allocates nothing once the sequences of the batch have started.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
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

int64_t num_allocated_by(auto&& act) {
  const int64_t before = num_allocations.load();
  act();
  return num_allocations.load() - before;
}

/// The pool is full of what earlier requests left in the cache, so that each new block moves one to
/// the swap space first, which in the end is full too; three plans are in flight, and half of the
/// sequences try drafts, where no plan in flight makes their last token.
TEST(SchedulerAllocations, NoneWhileCachedBlocksAreMovedAndPlansAreInFlight) {
  for (const int32_t num_plans : {1, 3}) {
    Scheduler scheduler({.max_num_batched_tokens = 256,
                         .max_num_seqs = 24,
                         .max_model_len = 600,
                         .max_logits_rows = 64,
                         .num_blocks = 600,
                         .enable_prefix_caching = true,
                         .num_swap_blocks = 100,
                         .max_plans_in_flight = num_plans});
    std::vector<SampledToken> sampled(150);
    std::vector<const BatchPlan*> plans;
    plans.reserve(4);
    const std::array<int32_t, 3> drafts = {1, 2, 0};
    int64_t num_moved = 0;
    int64_t num_placeholders = 0;
    int64_t num_drafts = 0;
    const auto half_step = [&](bool offers_drafts) {
      for (RequestId id = 20; offers_drafts && id < 40; id += 2) {
        scheduler.set_drafts({id, 0}, drafts);
      }
      const BatchPlan* plan = scheduler.plan();
      if (plan == nullptr) {
        const auto samples = static_cast<size_t>(num_samples(*plans.front()));
        scheduler.commit(plans.front()->step, std::span(sampled).first(samples));
        plans.erase(plans.begin());
        return;
      }
      plans.push_back(plan);
      num_moved += static_cast<int64_t>(plan->block_ops.size());
      num_placeholders += std::count(plan->tokens.begin(), plan->tokens.end(), kPlaceholderToken);
      for (const PlanRow& row : plan->rows) num_drafts += row.num_draft;
    };
    const auto add = [&](RequestId first, int32_t length, int32_t max_tokens) {
      for (RequestId id = first; id < first + 20; ++id) {
        Request request{.id = id, .prompt = std::vector<int32_t>(static_cast<size_t>(length))};
        std::iota(request.prompt.begin(), request.prompt.end(), static_cast<int32_t>(id) * 1000);
        request.sampling.max_tokens = max_tokens;
        ASSERT_FALSE(scheduler.add(std::move(request)));
      }
    };
    add(0, 500, 1);
    while (!scheduler.idle()) half_step(false);
    add(20, 10, 400);
    while (scheduler.num_waiting() > 0) half_step(false);
    for (int i = 0; i < 20; ++i) half_step(true);
    num_moved = num_placeholders = num_drafts = 0;
    EXPECT_EQ(num_allocated_by([&] {
                for (int i = 0; i < 300; ++i) half_step(true);
              }),
              0);
    EXPECT_GT(num_moved, 100);
    EXPECT_GT(scheduler.swap_counts().tier_evictions, 0);
    EXPECT_EQ(num_placeholders > 0, num_plans > 1);
    EXPECT_EQ(num_drafts > 0, num_plans == 1);
  }
}

TEST(SchedulerAllocations, AreCounted) {
  const int64_t before = num_allocations.load();
  const auto plan = std::make_unique<BatchPlan>();
  EXPECT_EQ(plan->step, 0);
  EXPECT_GT(num_allocations.load(), before);
}

}  // namespace
}  // namespace quire::sched
