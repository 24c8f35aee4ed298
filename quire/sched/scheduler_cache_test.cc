#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "quire/sched/scheduler.h"

namespace quire::sched {
namespace {

constexpr SchedulerOptions kOptions{.max_num_batched_tokens = 2048,
                                    .max_num_seqs = 32,
                                    .max_model_len = 4096,
                                    .num_blocks = 2048,
                                    .enable_prefix_caching = true};

/// `shared` tokens that all have, then own ones.
Request request(RequestId id, int32_t shared, int32_t length, int32_t max_tokens) {
  Request made{.id = id, .prompt = std::vector<int32_t>(static_cast<size_t>(length))};
  std::iota(made.prompt.begin(), made.prompt.end(), 0);
  for (auto i = static_cast<size_t>(shared); i < made.prompt.size(); ++i) {
    made.prompt[i] += 10000 * static_cast<int32_t>(id + 1);
  }
  made.sampling.max_tokens = max_tokens;
  return made;
}

struct Ran {
  int64_t num_computed = 0;
  int32_t most_used = 0;
  std::vector<CommitEvent> events;
};

/// Steps until all have ended; sampled tokens count up from 500.
Ran run(Scheduler& scheduler, int64_t max_steps = 1 << 20) {
  Ran done;
  int32_t next = 500;
  while (max_steps-- > 0) {
    const BatchPlan* plan = scheduler.plan();
    if (plan == nullptr) break;
    done.num_computed += static_cast<int64_t>(plan->tokens.size());
    done.most_used = std::max(done.most_used, scheduler.pool().num_used());
    std::vector<SampledToken> sampled;
    for (const LogitsUse& use : plan->uses) {
      if (use.kind == LogitsUse::Kind::kSample) sampled.push_back({.token = next++});
    }
    for (const CommitEvent& event : scheduler.commit(plan->step, sampled)) {
      done.events.push_back(event);
    }
    EXPECT_FALSE(scheduler.check_invariants()) << *scheduler.check_invariants();
  }
  return done;
}

TEST(PrefixCaching, SixteenAtOnceComputeWhatTheyShareOnce) {
  for (const int32_t budget : {2048, 512, 100}) {
    SchedulerOptions options = kOptions;
    options.max_num_batched_tokens = budget;
    Scheduler scheduler(options);
    for (RequestId id = 0; id < 16; ++id) {
      ASSERT_FALSE(scheduler.add(request(id, 896, 1024, 1)));
    }
    const Ran done = run(scheduler);
    EXPECT_EQ(done.num_computed, 1024 + 15 * 128) << "budget " << budget;  // of 16,384
    EXPECT_EQ(scheduler.cache_counts().queries, 16 * 1024);
    EXPECT_EQ(scheduler.cache_counts().hits, 15 * 896);
    ASSERT_EQ(done.events.size(), 16u);
    for (const CommitEvent& event : done.events) {
      EXPECT_EQ(event.num_cached, event.sequence.request == 0 ? 0 : 896);
    }
    EXPECT_EQ(scheduler.kv_usage(), 0);
  }
}

TEST(PrefixCaching, ChoicesHoldTheirPromptOnce) {
  const auto blocks_used = [](int32_t n, int32_t requests) {
    SchedulerOptions options = kOptions;
    options.enable_prefix_caching = false;
    options.max_num_batched_tokens = 8192;
    Scheduler scheduler(options);
    for (RequestId id = 0; id < requests; ++id) {
      Request made = request(id, 512, 512, 16);
      made.n = n;
      EXPECT_FALSE(scheduler.add(std::move(made)));
    }
    return run(scheduler).most_used;
  };
  // 8 x 32 blocks for the prompts, against 32; and one for each choice's own tokens.
  EXPECT_EQ(blocks_used(1, 8) - 8, 256);
  EXPECT_EQ(blocks_used(8, 1) - 8, 32);
}

TEST(PrefixCaching, TheNextTurnFindsTheAnswer) {
  Scheduler scheduler(kOptions);
  Request first = request(0, 40, 40, 30);
  Request next = first;
  ASSERT_FALSE(scheduler.add(std::move(first)));
  const Ran answer = run(scheduler);
  next.id = 1;
  for (const CommitEvent& event : answer.events) next.prompt.push_back(event.token);
  next.prompt.insert(next.prompt.end(), {7, 8, 9});
  ASSERT_FALSE(scheduler.add(std::move(next)));
  // 69 of 70 tokens were stored, which fill 4 blocks; 73 - 64 are left, and 29 of the answer.
  const Ran turn = run(scheduler);
  EXPECT_EQ(turn.events.front().num_cached, 64);
  EXPECT_EQ(turn.num_computed, 9 + 29);
}

TEST(PrefixCaching, AFullHitComputesTheLastToken) {
  for (const int32_t length : {16, 17, 32, 33}) {
    Scheduler scheduler(kOptions);
    ASSERT_FALSE(scheduler.add(request(0, length, length, 1)));
    run(scheduler);
    ASSERT_FALSE(scheduler.add(request(1, length, length, 1)));
    const int32_t cached = (length - 1) / 16 * 16;
    EXPECT_EQ(run(scheduler).num_computed, length - cached);
    EXPECT_EQ(scheduler.cache_counts().hits, cached);
  }
}

TEST(PrefixCaching, KeysThatDifferShareNothing) {
  Scheduler scheduler(kOptions);
  const auto hits_after = [&](RequestId id, auto change) {
    Request made = request(id, 64, 64, 1);
    change(made);
    EXPECT_FALSE(scheduler.add(std::move(made)));
    run(scheduler);
    return scheduler.cache_counts().hits;
  };
  EXPECT_EQ(hits_after(0, [](Request&) {}), 0);
  EXPECT_EQ(hits_after(1, [](Request& r) { r.cache_salt = "tenant"; }), 0);
  EXPECT_EQ(hits_after(2, [](Request& r) { r.adapter = "tenant"; }), 0);
  EXPECT_EQ(hits_after(3, [](Request& r) { r.numbers_key = 1; }), 0);
  EXPECT_EQ(hits_after(4, [](Request&) {}), 48);
  EXPECT_EQ(hits_after(5, [](Request& r) { r.cache_salt = "tenant"; }), 96);
}

TEST(PrefixCaching, EvictionTakesTheLongestUnused) {
  SchedulerOptions options = kOptions;
  options.num_blocks = 8;
  Scheduler scheduler(options);
  const auto computed = [&](RequestId id, RequestId like) {
    Request made = request(like, 0, 33, 1);
    made.id = id;
    EXPECT_FALSE(scheduler.add(std::move(made)));
    return run(scheduler).num_computed;
  };
  EXPECT_EQ(computed(10, 1), 33);
  EXPECT_EQ(computed(11, 2), 33);
  EXPECT_EQ(computed(12, 1), 1);   // 1 is now the one used last
  EXPECT_EQ(computed(13, 3), 33);  // 8 blocks: 2 cached of each of them, 2 with nothing
  EXPECT_EQ(computed(14, 4), 33);  // takes those two and the last block of 2
  EXPECT_EQ(computed(15, 1), 1);
  EXPECT_EQ(computed(16, 2), 17);  // its prefix has outlived its suffix
}

TEST(Scheduler, PreemptionsOfARequestAreBounded) {
  SchedulerOptions options = kOptions;
  options.enable_prefix_caching = false;
  options.num_blocks = 12;
  Scheduler scheduler(options);
  std::vector<int32_t> starts(20);
  for (RequestId id = 0; id < 20; ++id) ASSERT_FALSE(scheduler.add(request(id, 0, 20, 120)));
  while (const BatchPlan* plan = scheduler.plan()) {
    for (const RowStart& start : plan->started) {
      ++starts[static_cast<size_t>(start.sequence.request)];
    }
    ASSERT_FALSE(
        scheduler.commit(plan->step, std::vector<SampledToken>(plan->logits_rows.size())).empty());
  }
  EXPECT_GT(*std::max_element(starts.begin(), starts.end()), 2);
  EXPECT_LE(*std::max_element(starts.begin(), starts.end()), 1 + kMaxPreemptions);
}

}  // namespace
}  // namespace quire::sched
