#include "quire/sched/testing/trace.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace quire::sched::testing {
namespace {

const std::filesystem::path kTraces = QUIRE_SOURCE_DIR "/quire/sched/testing/traces";

std::vector<std::string> trace_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTraces)) {
    names.push_back(entry.path().stem().string());
  }
  return names;
}

class Traces : public ::testing::TestWithParam<std::string> {};

TEST_P(Traces, Holds) {
  std::ifstream file(kTraces / (GetParam() + ".trace"));
  std::stringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.str().empty());
  const auto wrong = run_trace(text.str());
  EXPECT_FALSE(wrong) << GetParam() << ".trace, " << *wrong;
}

INSTANTIATE_TEST_SUITE_P(All, Traces, ::testing::ValuesIn(trace_names()),
                         [](const auto& trace) { return trace.param; });

TEST(Trace, SaysWhereItFails) {
  EXPECT_EQ(run_trace("submit a 3\n\nstep\nexpect a:4").value_or(""),
            "line 4: expected expect [a:4], found [a:3]");
  EXPECT_EQ(run_trace("submit a 3\nidle").value_or(""), "line 2: there is something to run");
  EXPECT_EQ(run_trace("step").value_or(""), "line 1: nothing to run");
  EXPECT_EQ(run_trace("options blocks 2\nsubmit a 33 max 1 refused\nsubmit b 32 max 1 refused")
                .value_or(""),
            "line 3: accepted");
  EXPECT_EQ(run_trace("leap").value_or(""), "line 1: unknown statement leap");
}

}  // namespace
}  // namespace quire::sched::testing
