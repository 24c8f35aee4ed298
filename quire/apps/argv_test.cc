#include "quire/apps/argv.h"

#include <gtest/gtest.h>

namespace quire::apps {
namespace {

using Words = std::vector<std::string>;

TEST(Argv, EverySpellingOfAnOptionBecomesOne) {
  EXPECT_EQ(normalise_argv({"--max_model_len", "8192"}), Words({"--max-model-len", "8192"}));
  EXPECT_EQ(normalise_argv({"--max_model_len=8192"}), Words({"--max-model-len=8192"}));
  EXPECT_EQ(normalise_argv({"--max-model-len=8192"}), Words({"--max-model-len=8192"}));
  EXPECT_EQ(normalise_argv({"-tp", "1"}), Words({"--tensor-parallel-size", "1"}));
  EXPECT_EQ(normalise_argv({"-tp=2", "-pp", "1"}),
            Words({"--tensor-parallel-size=2", "--pipeline-parallel-size", "1"}));
}

TEST(Argv, ValuesAndWhatFollowsTheDoubleDashStay) {
  EXPECT_EQ(normalise_argv({"--chat-template=a_b.jinja", "my_model", "-v"}),
            Words({"--chat-template=a_b.jinja", "my_model", "-v"}));
  EXPECT_EQ(normalise_argv({"--", "--max_model_len"}), Words({"--", "--max_model_len"}));
}

}  // namespace
}  // namespace quire::apps
