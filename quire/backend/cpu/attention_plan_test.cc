#include "quire/backend/cpu/attention_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu {
namespace {

/// A step of sequences (new tokens, context after them).
class Step {
 public:
  explicit Step(const std::vector<std::pair<int32_t, int32_t>>& rows) : starts_(1, 0) {
    for (const auto& [tokens, context] : rows) {
      starts_.push_back(starts_.back() + tokens);
      contexts_.push_back(context);
    }
    meta_.query_start = starts_;
    meta_.context_len = contexts_;
  }
  const StepMeta& meta() const { return meta_; }

 private:
  std::vector<int32_t> starts_, contexts_;
  StepMeta meta_;
};

/// Checks that every (token, kv head) meets every split it sees, once; returns the number of items.
size_t check_cover(const AttentionPlan& plan, const Step& step) {
  const StepMeta& meta = step.meta();
  std::map<std::tuple<int32_t, int32_t, int32_t>, int> met;  // token, head, split
  for (const AttentionItem& item : plan.items()) {
    for (int32_t t = item.first_token; t < item.first_token + item.num_tokens; ++t) {
      for (int32_t s = item.split_begin; s < item.split_end; ++s) ++met[{t, item.kv_head, s}];
    }
  }
  const int32_t window = plan.shape().window;
  for (size_t row = 0; row < meta.context_len.size(); ++row) {
    for (int32_t t = meta.query_start[row]; t < meta.query_start[row + 1]; ++t) {
      const int32_t position = meta.context_len[row] - (meta.query_start[row + 1] - t);
      const int32_t first = window > 0 ? std::max(0, position + 1 - window) : 0;
      for (int32_t head = 0; head < plan.shape().num_kv_heads; ++head) {
        for (int32_t s = first / 512; s <= position / 512; ++s) {
          EXPECT_EQ((met[{t, head, s}]), 1) << t << " " << head << " " << s;
        }
      }
    }
  }
  for (const auto& [key, count] : met) EXPECT_EQ(count, 1);
  return plan.items().size();
}

const AttentionShape kShape{9, 3, 64, 0.125f, 0};

TEST(AttentionPlan, CoversPrefillDecodeAndWindows) {
  for (const int32_t window : {0, 1, 512, 700}) {
    AttentionShape shape = kShape;
    shape.window = window;
    for (const int workers : {1, 2, 16}) {
      AttentionPlan plan(shape, 0, 4096, workers);
      for (const Step& step :
           {Step({{512, 512}}), Step({{1, 8000}}), Step({{1, 40}, {1, 41}, {600, 1800}, {1, 512}}),
            Step({{7, 513}, {1, 1}})}) {
        plan.build(step.meta());
        check_cover(plan, step);
        EXPECT_EQ(plan.start_of(0), 0);
        EXPECT_EQ(plan.start_of(workers), static_cast<int64_t>(plan.items().size()));
      }
    }
  }
}

TEST(AttentionPlan, OneLongSequenceIsSharedOutAndManyAreNot) {
  AttentionPlan plan(kShape, 0, 4096, 2);
  const Step lone({{1, 8192}});
  plan.build(lone.meta());
  EXPECT_EQ(check_cover(plan, lone), 3u * 16u);
  const Step many(std::vector<std::pair<int32_t, int32_t>>(20, {1, 8192}));
  plan.build(many.meta());
  EXPECT_EQ(check_cover(plan, many), 3u * 20u);
}

TEST(AttentionPlan, PartialsOfSharedTilesNeverOverlapAndFit) {
  AttentionPlan plan(kShape, 0, 4096, 8);
  const Step step({{3, 100000}, {1, 60000}, {2, 100000}});  // more than fits
  plan.build(step.meta());
  check_cover(plan, step);
  int64_t end = 0;
  int32_t last = -1;
  for (const AttentionItem& item : plan.items()) {
    if (item.shared < 0 || item.shared == last) continue;
    last = item.shared;
    EXPECT_EQ(plan.shared(last).first_partial, end);
    end += int64_t{plan.shared(last).num_splits} * item.num_tokens * 3;
  }
  EXPECT_GT(end, 0);
  EXPECT_LE(end, AttentionPlan::shared_rows(kShape));
}

TEST(AttentionPlan, TheLastSplitToFinishIsTold) {
  AttentionPlan plan(kShape, 0, 16, 2);
  plan.build(Step({{1, 1500}}).meta());
  ASSERT_EQ(plan.items()[0].shared, 0);
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_FALSE(plan.finish_split(0));
    EXPECT_FALSE(plan.finish_split(0));
    EXPECT_TRUE(plan.finish_split(0));
  }
}

TEST(AttentionPlan, StaticSharesAreEvenInCost) {
  AttentionPlan plan(kShape, 0, 4096, 2);
  plan.build(Step({{512, 512}}).meta());
  int64_t cost[2] = {0, 0};
  for (int worker = 0; worker < 2; ++worker) {
    for (int64_t i = plan.start_of(worker); i < plan.start_of(worker + 1); ++i) {
      const AttentionItem& item = plan.items()[static_cast<size_t>(i)];
      cost[worker] += int64_t{item.num_tokens} * (item.first_position + item.num_tokens);
    }
  }
  EXPECT_NEAR(static_cast<double>(cost[0]) / static_cast<double>(cost[1]), 1.0, 0.1);
}

}  // namespace
}  // namespace quire::backend::cpu
