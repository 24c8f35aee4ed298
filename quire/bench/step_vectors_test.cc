#include "quire/bench/step_vectors.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::bench {
namespace {

using ::testing::ElementsAre;

TEST(StepVectors, RowsOfDifferentLengthsShareATableWidth) {
  StepVectors step(2, 16);
  const std::vector<int32_t> prompt = {5, 6, 7};
  step.add_row(prompt, 0, 0);
  step.want_logits(1);
  const std::vector<int32_t> last = {9};
  step.add_row(last, 20, 4);
  step.want_logits(1);
  const backend::StepMeta meta = step.meta();
  EXPECT_THAT(meta.token_ids, ElementsAre(5, 6, 7, 9));
  EXPECT_THAT(meta.positions, ElementsAre(0, 1, 2, 20));
  EXPECT_THAT(meta.query_start, ElementsAre(0, 3, 4));
  EXPECT_THAT(meta.context_len, ElementsAre(3, 21));
  EXPECT_THAT(meta.logits_rows, ElementsAre(2, 3));
  ASSERT_EQ(meta.groups.size(), 2u);
  EXPECT_THAT(meta.groups[1].slots, ElementsAre(0, 1, 2, 4 * 16 + 20));
  EXPECT_EQ(meta.groups[0].table_width, 2);
  EXPECT_THAT(meta.groups[0].block_tables, ElementsAre(0, 1, 4, 5));
  step.clear();
  EXPECT_EQ(step.meta().num_tokens(), 0);
  EXPECT_EQ(step.meta().num_rows(), 0);
}

TEST(SomeTokens, LieInTheVocabularyAndDifferBySalt) {
  const std::vector<int32_t> tokens = some_tokens(500, 50, 1);
  for (const int32_t token : tokens) {
    EXPECT_GE(token, 0);
    EXPECT_LT(token, 50);
  }
  EXPECT_NE(tokens, some_tokens(500, 50, 2));
}

}  // namespace
}  // namespace quire::bench
