#include "quire/bench/trace/timeline.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "quire/base/error.h"

namespace quire::bench {
namespace {

Timeline timeline_of(std::string_view script) {
  return record_timeline(parse_trace(script, "script"));
}

std::string error_of(std::string_view script) {
  try {
    timeline_of(script);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(TraceScript, NamesTheLineAtFault) {
  EXPECT_NE(error_of("submit a 3\nleap").find("script:2: unknown statement leap"),
            std::string::npos);
  EXPECT_NE(error_of("submit a").find("a name and a prompt length"), std::string::npos);
  EXPECT_NE(error_of("submit a 3 max").find("a number expected"), std::string::npos);
  EXPECT_NE(error_of("submit a 3 max -1").find("-1"), std::string::npos);
  EXPECT_NE(error_of("submit a 3\nsubmit a 3").find("script:2: a second a"), std::string::npos);
  EXPECT_NE(error_of("cancel a").find("the name of a request"), std::string::npos);
  EXPECT_NE(error_of("options speed 3").find("unknown option speed"), std::string::npos);
  EXPECT_NE(error_of("options blocks 0\nsubmit a 3"), "");
  EXPECT_NE(error_of("options blocks 2 block_tokens 4\nsubmit a 90").find("request a"),
            std::string::npos);
}

TEST(TraceScript, ReadsTheSchedulersOwnTraces) {
  for (const char* name : {"textbook", "preemption", "choices", "one_budget"}) {
    std::ifstream file(std::string(QUIRE_SOURCE_DIR "/quire/sched/testing/traces/") + name +
                       ".trace");
    std::stringstream text;
    text << file.rdbuf();
    const Timeline timeline = timeline_of(text.str());
    EXPECT_FALSE(timeline.steps.empty()) << name;
  }
}

TEST(Timeline, DrawsTheTextbooksPicture) {
  const std::string text = timeline_text(timeline_of(textbook_trace()));
  EXPECT_EQ(text.substr(0, text.find("A5:")),
            "3 rows, 16 blocks of 4 tokens, at most 2048 tokens a step\n"
            "\n"
            "step    1   2   3   4   5   6   7   8   9   10  11  12\n"
            "row 0   A5  A   A   A   A   A   A   A   A   A   A   A┤\n"
            "row 1   B7  B   B   B┤  D4  D   D   D   D   D┤  ·   ·\n"
            "row 2   C6  C   C   C   C   C   C   C┤  ·   ·   ·   ·\n"
            "queue   D   D   D   D\n"
            "\n");
  EXPECT_NE(text.find("step 5: 6 tokens, 9 of 16 blocks free\n"
                      "  A  1 token                → output 5           0▕████▏ 1▕████▏ 2▕▓···▏\n"
                      "  D  prompt 4               → output 1           3▕▓▓▓▓▏\n"
                      "  C  1 token                → output 5           4▕████▏ 5▕████▏ 7▕█▓··▏\n"),
            std::string::npos)
      << text;
}

TEST(Timeline, ShowsWhatChoicesShareAndCopy) {
  const Timeline timeline =
      timeline_of("options blocks 16 block_tokens 4\nsubmit a 6 max 3 n 2\nrun");
  ASSERT_EQ(timeline.steps.size(), 3u);
  EXPECT_EQ(timeline.name({0, 1}), "a.1");
  const TimelineStep& second = timeline.steps[1];
  ASSERT_EQ(second.rows.size(), 2u);
  for (const TimelineRow& row : second.rows) {
    ASSERT_EQ(row.blocks.size(), 2u);
    EXPECT_TRUE(row.blocks[0].shared);   // the full block of the prompt
    EXPECT_FALSE(row.blocks[1].shared);  // the one that both write into
  }
  EXPECT_EQ(second.block_ops.size(), 1u);
  EXPECT_EQ(second.rows[0].blocks[1].copied + second.rows[1].blocks[1].copied, 1);
  const std::string text = timeline_text(timeline);
  EXPECT_NE(text.find("copy block"), std::string::npos);
  EXPECT_NE(text.find("0=▕████▏"), std::string::npos) << text;
}

TEST(Timeline, ShowsWhoLostItsBlocks) {
  const Timeline timeline =
      timeline_of("options blocks 4 block_tokens 4\nsubmit a 7 max 8\nsubmit b 3 max 8\nrun");
  int preempted = 0;
  for (const TimelineStep& step : timeline.steps) {
    preempted += static_cast<int>(step.preempted.size());
    for (const auto& sequence : step.preempted) EXPECT_EQ(timeline.name(sequence), "b");
  }
  EXPECT_GT(preempted, 0);
  EXPECT_NE(timeline_text(timeline).find("b lost its blocks"), std::string::npos);
}

TEST(Timeline, CancelledRowsAreNotPreempted) {
  const Timeline timeline =
      timeline_of("submit a 7 max 8\nsubmit b 3 max 8\nstep 2\ncancel a\nrun");
  for (const TimelineStep& step : timeline.steps) EXPECT_TRUE(step.preempted.empty());
}

/// Every tag that opens closes, and what is drawn is what ran.
TEST(Timeline, SvgIsWellFormed) {
  const Timeline timeline = timeline_of("submit a<&b 5 max 3\nsubmit c 4 max 2\nrun");
  const std::string svg = timeline_svg(timeline);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find(">a&lt;&amp;b +5</text>"), std::string::npos);
  EXPECT_EQ(svg.find("a<&b"), std::string::npos);
  EXPECT_NE(svg.find(">c +4</text>"), std::string::npos);
  EXPECT_NE(svg.find(">block 0</text>"), std::string::npos);
}

}  // namespace
}  // namespace quire::bench
