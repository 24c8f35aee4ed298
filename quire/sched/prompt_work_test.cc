#include "quire/sched/prompt_work.h"

#include <gtest/gtest.h>

namespace quire::sched {
namespace {

TEST(PromptWorkTest, CountsTokensWhereAttentionIsFree) {
  const PromptWork work;
  EXPECT_EQ(work.of(100, 5000), 100);
  EXPECT_EQ(work.tokens_within(100, 5000, 1000), 100);
  EXPECT_EQ(work.tokens_within(99.9, 5000, 1000), 99);
  EXPECT_EQ(work.tokens_within(0, 0, 1000), 0);
}

TEST(PromptWorkTest, SumsWhatEachTokenAttends) {
  const PromptWork work{.attended_share = 0.25};
  // Behind 8 others: 1 + 2, 1 + 2.25, 1 + 2.5.
  EXPECT_EQ(work.of(3, 8), 9.75);
  EXPECT_EQ(work.of(0, 8), 0);
}

TEST(PromptWorkTest, TokensWithinIsTheLargestNumberThatFits) {
  for (const double share : {0.0, 1e-4, 0.03, 2.0}) {
    const PromptWork work{.attended_share = share};
    for (const int64_t context : {0, 1, 500, 100'000}) {
      for (const int64_t tokens : {1, 2, 77, 2048}) {
        const double cost = work.of(tokens, context);
        EXPECT_EQ(work.tokens_within(cost, context, 5000), tokens) << share << " " << context;
        EXPECT_EQ(work.tokens_within(cost * 0.9999, context, 5000), tokens - 1)
            << share << " " << context;
        EXPECT_EQ(work.tokens_within(cost, context, tokens / 2), tokens / 2);
      }
    }
  }
}

}  // namespace
}  // namespace quire::sched
