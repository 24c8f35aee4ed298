#include "quire/sched/scheduler.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr SchedulerOptions kOptions{
    .max_num_batched_tokens = 64, .max_num_seqs = 4, .max_model_len = 200, .num_blocks = 32};

void add(Scheduler& scheduler, RequestId id, std::vector<int32_t> prompt, int32_t max_tokens,
         int32_t n = 1) {
  Request request{.id = id, .prompt = std::move(prompt), .n = n};
  request.sampling.max_tokens = max_tokens;
  request.sampling.seed = static_cast<uint64_t>(100 + id);
  ASSERT_FALSE(scheduler.add(std::move(request)));
}

/// The events of the step in flight when it samples `tokens`.
std::vector<CommitEvent> commit(Scheduler& scheduler, const BatchPlan& plan,
                                const std::vector<SampledToken>& tokens) {
  const auto events = scheduler.commit(plan.step, tokens);
  return {events.begin(), events.end()};
}

TEST(Scheduler, APlanSaysAllTheRunnerNeeds) {
  Scheduler scheduler(kOptions);
  EXPECT_EQ(scheduler.plan(), nullptr);
  EXPECT_TRUE(scheduler.idle());
  add(scheduler, 7, {11, 12, 13}, 5, 2);
  add(scheduler, 8, {21, 22}, 5);
  const BatchPlan* plan = scheduler.plan();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(scheduler.plan(), nullptr);  // one in flight

  ASSERT_EQ(plan->started.size(), 3u);  // 7.0, 7.1 which samples its first token now, 8
  EXPECT_EQ(plan->started[0].sequence, (SequenceId{7, 0}));
  EXPECT_EQ(plan->started[1].sequence, (SequenceId{7, 1}));
  EXPECT_EQ(plan->started[2].sequence, (SequenceId{8, 0}));
  EXPECT_EQ(plan->started[1].sampling.seed, 107u);
  EXPECT_THAT(plan->started[1].prompt, ElementsAre(11, 12, 13));
  EXPECT_THAT(plan->started[1].output, IsEmpty());

  ASSERT_EQ(plan->rows.size(), 2u);
  EXPECT_EQ(plan->rows[1].row, plan->started[2].row);
  EXPECT_EQ(plan->rows[1].query_start, 3);
  EXPECT_EQ(plan->rows[1].num_tokens, 2);
  EXPECT_EQ(plan->rows[1].context_len, 2);
  EXPECT_THAT(plan->tokens, ElementsAre(11, 12, 13, 21, 22));
  EXPECT_THAT(plan->positions, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(plan->groups[0].slots, ElementsAre(0, 1, 2, 256, 257));
  EXPECT_THAT(plan->groups[0].block_table, ElementsAre(0, 16));
  EXPECT_EQ(plan->groups[0].table_width, 1);
  EXPECT_THAT(plan->logits_rows, ElementsAre(2, 4));
  ASSERT_EQ(plan->uses.size(), 3u);
  EXPECT_EQ(plan->uses[1].row, plan->started[1].row);
  EXPECT_EQ(plan->uses[1].logits_index, 0);
  EXPECT_EQ(plan->uses[1].position, 3);
  EXPECT_EQ(plan->uses[2].logits_index, 1);
  EXPECT_THAT(plan->finished, IsEmpty());
  EXPECT_THAT(plan->block_ops, IsEmpty());
}

TEST(Scheduler, EventsFollowTheSamples) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5, 6}, 2);
  add(scheduler, 2, {5}, 9);
  const BatchPlan* plan = scheduler.plan();
  auto events = commit(scheduler, *plan, {{.token = 40}, {.token = 41}});
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].sequence, (SequenceId{1, 0}));
  EXPECT_EQ(events[0].token, 40);
  EXPECT_TRUE(events[0].first_token);
  EXPECT_EQ(events[0].finish, FinishReason::kNone);

  plan = scheduler.plan();
  EXPECT_THAT(plan->tokens, ElementsAre(40, 41));
  events = commit(scheduler, *plan, {{.token = 42, .stop = true}, {.token = 43, .stop = true}});
  EXPECT_EQ(events[0].finish, FinishReason::kStop);  // a stop on the last token is a stop
  EXPECT_FALSE(events[0].first_token);
  EXPECT_EQ(events[1].finish, FinishReason::kStop);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.kv_usage(), 0);
}

TEST(Scheduler, LengthEndsASequence) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5}, 1);
  const BatchPlan* plan = scheduler.plan();
  EXPECT_EQ(commit(scheduler, *plan, {{.token = 40}})[0].finish, FinishReason::kLength);
}

TEST(Scheduler, FinishedRowsAreNamedOnceAndFirst) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5}, 1);
  const BatchPlan* plan = scheduler.plan();
  const RowId row = plan->started[0].row;
  commit(scheduler, *plan, {{.token = 40}});
  add(scheduler, 2, {5}, 1);
  plan = scheduler.plan();
  EXPECT_THAT(plan->finished, ElementsAre(row));
  EXPECT_EQ(plan->started[0].row, row);  // it may start again in the same plan
  commit(scheduler, *plan, {{.token = 40}});
  EXPECT_EQ(scheduler.plan(), nullptr);
  std::vector<RowId> rows;
  scheduler.take_finished_rows(rows);
  EXPECT_THAT(rows, ElementsAre(row));
  add(scheduler, 3, {5}, 1);
  EXPECT_THAT(scheduler.plan()->finished, IsEmpty());
}

TEST(Scheduler, SaysHowManyPromptTokensComeToSoMuchWork) {
  SchedulerOptions options = kOptions;
  options.prompt_work.attended_share = 0.5;
  Scheduler scheduler(options);
  EXPECT_EQ(scheduler.prompt_tokens_within(100), 0);
  EXPECT_EQ(scheduler.num_prompts(), 0);
  add(scheduler, 1, std::vector<int32_t>(66, 5), 4);
  add(scheduler, 2, {1, 2, 3}, 4);
  // The first token costs 1, the next 1.5, then 2: and the other prompt begins anew.
  EXPECT_EQ(scheduler.prompt_tokens_within(1 + 1.5 + 2), 3);
  EXPECT_EQ(scheduler.prompt_tokens_within(1 + 1.5 + 1.9), 2);
  EXPECT_EQ(scheduler.prompt_tokens_within(1e9), 69);
  const BatchPlan* plan = scheduler.plan();
  ASSERT_EQ(plan->tokens.size(), 64u);
  commit(scheduler, *plan, {});
  // Two are left of the first prompt, behind 64 others; 1 + 1.5 of the other fit behind them.
  EXPECT_EQ(scheduler.prompt_tokens_within(33), 1);
  EXPECT_EQ(scheduler.prompt_tokens_within(33 + 33.5 + 2.5), 4);
  EXPECT_EQ(scheduler.num_prompts(), 2);
  plan = scheduler.plan();
  commit(scheduler, *plan, {{.token = 9}, {.token = 9}});
  EXPECT_EQ(scheduler.num_prompts(), 0);
}

TEST(Scheduler, CountsChoices) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, std::vector<int32_t>(80, 1), 9, 3);
  add(scheduler, 2, {5}, 9, 2);
  EXPECT_EQ(scheduler.num_running(), 0);
  EXPECT_EQ(scheduler.num_waiting(), 5);
  const BatchPlan* plan = scheduler.plan();
  EXPECT_EQ(scheduler.num_running(), 3);  // two rows are set aside for the choices to come
  EXPECT_EQ(scheduler.num_waiting(), 2);
  EXPECT_DOUBLE_EQ(scheduler.kv_usage(), 4.0 / 32);
  commit(scheduler, *plan, {});
  scheduler.cancel(2);
  scheduler.cancel(99);
  EXPECT_EQ(scheduler.num_waiting(), 0);
  plan = scheduler.plan();
  scheduler.cancel(1);
  EXPECT_EQ(scheduler.num_running(), 3);  // until the step is committed
  EXPECT_THAT(commit(scheduler, *plan, {{}, {}, {}}), IsEmpty());
  EXPECT_EQ(scheduler.num_running(), 0);
  EXPECT_EQ(scheduler.kv_usage(), 0);
}

TEST(Scheduler, AFloodDoesNotDelayAnOldRequest) {
  Scheduler scheduler(kOptions);
  add(scheduler, 0, std::vector<int32_t>(150, 1), 20);
  int steps = 0;
  for (bool ended = false; !ended; ++steps) {
    for (int i = 0; i < 3; ++i) add(scheduler, 1 + steps * 3 + i, {1, 2, 3}, 4);
    const BatchPlan* plan = scheduler.plan();
    const auto samples = std::count_if(plan->uses.begin(), plan->uses.end(), [](const auto& use) {
      return use.kind == LogitsUse::Kind::kSample;
    });
    const std::vector<SampledToken> tokens(static_cast<size_t>(samples));
    for (const CommitEvent& event : scheduler.commit(plan->step, tokens)) {
      ended |= event.sequence.request == 0 && event.finish != FinishReason::kNone;
    }
  }
  EXPECT_EQ(steps, 3 + 19);  // 64 + 64 + 22 prompt tokens, then a token a step
}

TEST(SchedulerDeathTest, CommitsMustMatchTheirStep) {
  Scheduler scheduler(kOptions);
  add(scheduler, 1, {5}, 1);
  EXPECT_DEATH(scheduler.commit(0, {}), "in_flight");
  const BatchPlan* plan = scheduler.plan();
  EXPECT_DEATH(scheduler.commit(plan->step, {}), "sampled");
  EXPECT_DEATH(scheduler.commit(plan->step + 1, std::vector<SampledToken>(1)), "step");
}

}  // namespace
}  // namespace quire::sched
