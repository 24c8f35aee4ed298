#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/sched/scheduler.h"

namespace quire::sched {
namespace {

using ::testing::Each;
using ::testing::Field;

constexpr SchedulerOptions kOptions{.max_num_batched_tokens = 256,
                                    .max_num_seqs = 8,
                                    .max_model_len = 256,
                                    .num_blocks = 7,
                                    .num_swap_blocks = 10,
                                    .preemption_mode = PreemptionMode::kSwap};

Request request(RequestId id, int32_t length, int32_t max_tokens) {
  Request made{.id = id, .prompt = std::vector<int32_t>(static_cast<size_t>(length))};
  std::iota(made.prompt.begin(), made.prompt.end(), static_cast<int32_t>(id) * 1000);
  made.sampling.max_tokens = max_tokens;
  return made;
}

int64_t num_ops(const BatchPlan& plan, BlockOp::Kind kind) {
  return std::count_if(plan.block_ops.begin(), plan.block_ops.end(),
                       [&](const BlockOp& op) { return op.kind == kind; });
}

/// What steps do until nothing is left to run, or for `max_steps`.
struct Ran {
  int64_t num_computed = 0;
  int64_t num_out = 0;
  int64_t num_in = 0;
  int64_t num_scored = 0;  // prompt log-probabilities
};

Ran run(Scheduler& scheduler, int32_t max_steps = 1000) {
  Ran done;
  for (int32_t step = 0; step < max_steps; ++step) {
    const BatchPlan* plan = scheduler.plan();
    if (plan == nullptr) break;
    done.num_computed += static_cast<int64_t>(plan->tokens.size());
    done.num_out += num_ops(*plan, BlockOp::Kind::kSwapOut);
    done.num_in += num_ops(*plan, BlockOp::Kind::kSwapIn);
    std::vector<SampledToken> sampled;
    for (const LogitsUse& use : plan->uses) {
      if (use.kind == LogitsUse::Kind::kSample) sampled.push_back({.token = use.position});
      if (use.kind == LogitsUse::Kind::kPromptLogprob) ++done.num_scored;
    }
    scheduler.commit(plan->step, sampled);
    EXPECT_FALSE(scheduler.check_invariants()) << *scheduler.check_invariants();
  }
  return done;
}

TEST(Swap, NothingIsComputedTwice) {
  Scheduler scheduler(kOptions);
  ASSERT_FALSE(scheduler.add(request(1, 34, 35)));
  ASSERT_FALSE(scheduler.add(request(2, 34, 35)));
  const Ran first = run(scheduler, 20);
  EXPECT_DOUBLE_EQ(scheduler.swap_usage(), 0.3);
  EXPECT_EQ(scheduler.swap_pool()->num_used(), 3);
  const Ran rest = run(scheduler);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(first.num_computed + rest.num_computed, 2 * (34 + 34));
  EXPECT_EQ(scheduler.swap_usage(), 0);
  const SwapCounts counts = scheduler.swap_counts();
  EXPECT_EQ(counts.blocks_out, 3);
  EXPECT_EQ(counts.blocks_in, 3);
  EXPECT_EQ(counts.preemptions_swapped, 1);
  EXPECT_EQ(counts.preemptions_recomputed, 0);
}

TEST(Swap, WithoutASwapSpaceThereIsNone) {
  SchedulerOptions options = kOptions;
  options.num_swap_blocks = 0;
  Scheduler scheduler(options);
  ASSERT_FALSE(scheduler.add(request(1, 34, 35)));
  ASSERT_FALSE(scheduler.add(request(2, 34, 35)));
  const Ran all = run(scheduler);
  EXPECT_EQ(all.num_out + all.num_in, 0);
  EXPECT_EQ(scheduler.swap_usage(), 0);
  EXPECT_EQ(scheduler.swap_pool(), nullptr);
  EXPECT_EQ(scheduler.plan_flush(), nullptr);
  EXPECT_EQ(scheduler.swap_counts().preemptions_recomputed, 1);
}

/// The prompt's log-probabilities are read once, whatever happens to the blocks. Those that the
/// cache still has when the sequence returns are shared, not copied.
TEST(Swap, AScoredPromptGoesOnWhereItWas) {
  for (const bool is_cached : {false, true}) {
    SchedulerOptions options = kOptions;
    options.max_num_batched_tokens = 40;
    options.enable_prefix_caching = is_cached;
    Scheduler scheduler(options);
    Request scored = request(2, 60, 8);
    scored.sampling.prompt_logprobs = 0;
    ASSERT_FALSE(scheduler.add(request(1, 30, 35)));
    ASSERT_FALSE(scheduler.add(std::move(scored)));
    const Ran first = run(scheduler, 1);
    scheduler.set_token_budget(3);  // 2 tokens a step of the prompt, until its 4th block is wanted
    const Ran rest = run(scheduler);
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.swap_counts().preemptions_swapped, 1);
    EXPECT_EQ(rest.num_in, is_cached ? 0 : 3);
    EXPECT_EQ(first.num_computed + rest.num_computed, 30 + 34 + 60 + 7);
    EXPECT_EQ(first.num_scored + rest.num_scored, 59);
  }
}

SchedulerOptions cache_options() {
  SchedulerOptions options = kOptions;
  options.enable_prefix_caching = true;
  options.cache_seed = 3;
  return options;
}

TEST(SecondTier, HitsAreCounted) {
  Scheduler scheduler(cache_options());
  ASSERT_FALSE(scheduler.add(request(1, 70, 1)));
  EXPECT_EQ(run(scheduler).num_computed, 70);
  ASSERT_FALSE(scheduler.add(request(2, 100, 1)));  // takes all 7 blocks
  EXPECT_EQ(run(scheduler).num_out, 4);
  Request again = request(1, 70, 1);
  again.id = 3;
  ASSERT_FALSE(scheduler.add(std::move(again)));
  const Ran hit = run(scheduler);
  EXPECT_EQ(hit.num_computed, 70 - 64);
  EXPECT_EQ(hit.num_in, 4);
  EXPECT_EQ(scheduler.swap_counts().tier_hits, 64);
  EXPECT_EQ(scheduler.cache_counts().hits, 64);
}

TEST(SecondTier, SurvivesARestart) {
  Scheduler before(cache_options());
  ASSERT_FALSE(before.add(request(1, 70, 1)));
  EXPECT_EQ(before.plan_flush(), nullptr);  // not idle
  run(before);
  const BatchPlan* flush = before.plan_flush();
  ASSERT_NE(flush, nullptr);
  EXPECT_EQ(before.plan(), nullptr);
  EXPECT_TRUE(flush->rows.empty());
  EXPECT_EQ(flush->block_ops.size(), 4u);
  EXPECT_THAT(flush->block_ops, Each(Field(&BlockOp::kind, BlockOp::Kind::kSwapOut)));
  EXPECT_TRUE(before.commit(flush->step, {}).empty());
  EXPECT_EQ(before.plan_flush(), nullptr);  // nothing is lacking

  Scheduler after(cache_options());
  int32_t num_cached = 0;
  before.for_each_cached([&](kv::BlockId block, const kv::BlockHash& hash,
                             const kv::BlockHash& parent, std::span<const int32_t> tokens) {
    after.restore_cached(block, hash, parent, tokens);
    ++num_cached;
  });
  EXPECT_EQ(num_cached, 4);
  const std::vector<int32_t> tokens(16, 5);
  after.restore_cached(9, {.low = 1, .high = 2}, {}, tokens);           // not their hash
  after.restore_cached(9, kv::block_hash(3, {}, {}), {}, {});           // no block of tokens
  after.restore_cached(99, kv::block_hash(3, {}, tokens), {}, tokens);  // no such block
  EXPECT_EQ(after.swap_pool()->num_published(), 4);
  ASSERT_FALSE(after.add(request(1, 70, 1)));
  const Ran hit = run(after);
  EXPECT_EQ(hit.num_computed, 6);
  EXPECT_EQ(hit.num_in, 4);
}

TEST(SecondTier, OfAFlushTheLastUsedIsKept) {
  SchedulerOptions options = cache_options();
  options.num_swap_blocks = 2;
  Scheduler scheduler(options);
  ASSERT_FALSE(scheduler.add(request(1, 34, 1)));
  run(scheduler);
  ASSERT_FALSE(scheduler.add(request(2, 34, 1)));
  run(scheduler);
  const BatchPlan* flush = scheduler.plan_flush();
  ASSERT_NE(flush, nullptr);
  scheduler.commit(flush->step, {});
  std::vector<int32_t> firsts;
  scheduler.for_each_cached([&](kv::BlockId, const kv::BlockHash&, const kv::BlockHash&,
                                std::span<const int32_t> tokens) { firsts.push_back(tokens[0]); });
  EXPECT_THAT(firsts, ::testing::ElementsAre(2016, 2000));  // the beginning goes last
}

}  // namespace
}  // namespace quire::sched
