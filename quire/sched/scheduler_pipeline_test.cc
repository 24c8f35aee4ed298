// Several plans in flight, and draft tokens.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/sched/scheduler.h"

namespace quire::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr SchedulerOptions kOptions{.max_num_batched_tokens = 256,
                                    .max_num_seqs = 16,
                                    .max_model_len = 200,
                                    .num_blocks = 64,
                                    .max_plans_in_flight = 2};

void add(Scheduler& scheduler, RequestId id, std::vector<int32_t> prompt, int32_t max_tokens) {
  Request request{.id = id, .prompt = std::move(prompt)};
  request.sampling.max_tokens = max_tokens;
  ASSERT_FALSE(scheduler.add(std::move(request)));
}

std::vector<CommitEvent> commit(Scheduler& scheduler, const BatchPlan& plan,
                                const std::vector<SampledToken>& tokens) {
  const auto events = scheduler.commit(plan.step, tokens);
  return {events.begin(), events.end()};
}

TEST(PlansInFlight, RunTokensThatAreNotKnownYet) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5, 6, 7}, 3);
  const BatchPlan* first = scheduler.plan();
  ASSERT_NE(first, nullptr);
  const BatchPlan* second = scheduler.plan();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(scheduler.num_in_flight(), 2);
  EXPECT_EQ(scheduler.plan(), nullptr);              // as many as allowed
  EXPECT_THAT(first->tokens, ElementsAre(5, 6, 7));  // still valid
  EXPECT_THAT(second->tokens, ElementsAre(kPlaceholderToken));
  EXPECT_THAT(second->positions, ElementsAre(3));
  EXPECT_THAT(second->groups[0].slots, ElementsAre(3));
  EXPECT_EQ(second->uses[0].position, 4);

  auto events = commit(scheduler, *first, {{.token = 40}});
  EXPECT_EQ(events[0].token, 40);
  EXPECT_TRUE(events[0].first_token);
  const BatchPlan* third = scheduler.plan();  // samples the last one that is wanted
  EXPECT_THAT(third->tokens, ElementsAre(kPlaceholderToken));
  EXPECT_EQ(commit(scheduler, *second, {{.token = 41}})[0].token, 41);
  EXPECT_EQ(scheduler.plan(), nullptr);
  events = commit(scheduler, *third, {{.token = 42}});
  EXPECT_EQ(events[0].finish, FinishReason::kLength);
  EXPECT_TRUE(scheduler.idle());
}

TEST(PlansInFlight, WhatFollowsAStopIsDropped) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5, 6, 7}, 9);
  const BatchPlan* first = scheduler.plan();
  const RowId row = first->started[0].row;
  const BatchPlan* second = scheduler.plan();
  const auto events = commit(scheduler, *first, {{.token = 40, .stop = true}});
  EXPECT_EQ(events[0].finish, FinishReason::kStop);
  EXPECT_FALSE(scheduler.idle());
  EXPECT_EQ(scheduler.num_running(), 1);  // the second plan uses its row
  EXPECT_EQ(scheduler.plan(), nullptr);
  EXPECT_THAT(commit(scheduler, *second, {{.token = 41}}), IsEmpty());
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.kv_usage(), 0);
  std::vector<RowId> rows;
  scheduler.take_finished_rows(rows);
  EXPECT_THAT(rows, ElementsAre(row));
}

/// A prefix that a plan in flight computes is not computed again by the next one.
TEST(PlansInFlight, WaitForWhatOthersCompute) {
  SchedulerOptions options = kOptions;
  options.enable_prefix_caching = true;
  Scheduler scheduler(options);
  const std::vector<int32_t> prompt(100, 7);
  add(scheduler, 1, prompt, 4);
  const BatchPlan* first = scheduler.plan();
  EXPECT_EQ(first->tokens.size(), 100u);
  for (RequestId id = 2; id < 6; ++id) add(scheduler, id, prompt, 4);
  const BatchPlan* second = scheduler.plan();
  EXPECT_THAT(second->tokens, ElementsAre(kPlaceholderToken));
  commit(scheduler, *first, {{.token = 40}});
  const BatchPlan* third = scheduler.plan();
  EXPECT_EQ(third->tokens.size(), 1 + 4 * 4u);  // all but the last block of 96 tokens is there
  commit(scheduler, *second, {{.token = 40}});
  EXPECT_EQ(scheduler.cache_counts().hits, 4 * 96);
}

TEST(PlansInFlightDeathTest, AreCommittedInOrder) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5, 6, 7}, 9);
  scheduler.plan();
  const BatchPlan* second = scheduler.plan();
  EXPECT_DEATH(scheduler.commit(second->step, std::vector<SampledToken>(1)), "step");
}

TEST(Drafts, TheRightOnesAreTakenIn) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5, 6, 7}, 9);
  scheduler.set_drafts({1, 0}, std::vector<int32_t>{1, 2});  // it has no token yet: ignored
  scheduler.set_drafts({9, 0}, std::vector<int32_t>{1, 2});  // no such request
  const BatchPlan* plan = scheduler.plan();
  EXPECT_EQ(plan->rows[0].num_draft, 0);
  commit(scheduler, *plan, {{.token = 40}});

  scheduler.set_drafts({1, 0}, std::vector<int32_t>{41, 42, 50});
  plan = scheduler.plan();
  EXPECT_EQ(plan->rows[0].num_draft, 3);
  EXPECT_EQ(plan->rows[0].num_tokens, 4);
  EXPECT_EQ(plan->rows[0].context_len, 7);
  EXPECT_THAT(plan->tokens, ElementsAre(40, 41, 42, 50));
  EXPECT_THAT(plan->logits_rows, ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(plan->uses.size(), 4u);
  EXPECT_EQ(plan->uses[3].position, 7);
  EXPECT_EQ(scheduler.plan(), nullptr);  // not again before it is known which are right
  const auto events =
      commit(scheduler, *plan, {{.token = 41}, {.token = 42}, {.token = 43}, {.token = 51}});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].token, 43);
  EXPECT_FALSE(events[0].first_token);

  plan = scheduler.plan();  // goes on behind what is right
  EXPECT_THAT(plan->tokens, ElementsAre(43));
  EXPECT_THAT(plan->positions, ElementsAre(6));
}

TEST(Drafts, AStopEndsThem) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5, 6, 7}, 9);
  commit(scheduler, *scheduler.plan(), {{.token = 40}});
  scheduler.set_drafts({1, 0}, std::vector<int32_t>{41, 42});
  const BatchPlan* plan = scheduler.plan();
  const auto events =
      commit(scheduler, *plan, {{.token = 41, .stop = true}, {.token = 42}, {.token = 43}});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].finish, FinishReason::kStop);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.kv_usage(), 0);
}

TEST(Drafts, NoMoreThanTokensAreWanted) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5, 6, 7}, 3);
  commit(scheduler, *scheduler.plan(), {{.token = 40}});
  scheduler.set_drafts({1, 0}, std::vector<int32_t>{41, 42, 43, 44, 45});
  const BatchPlan* plan = scheduler.plan();
  EXPECT_EQ(plan->rows[0].num_draft, 1);
  const auto events = commit(scheduler, *plan, {{.token = 41}, {.token = 42}});
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].finish, FinishReason::kNone);
  EXPECT_EQ(events[1].finish, FinishReason::kLength);
}

}  // namespace
}  // namespace quire::sched
