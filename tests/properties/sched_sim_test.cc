// The simulator over 1,500 seeds, as ./dev test runs it; quire_sched_sim goes on for as long as
// asked, and plays one seed alone.
#include <cstdint>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "quire/sched/sim/simulator.h"
#include "quire/sched/testing/trace.h"

namespace quire::sched::sim {
namespace {

constexpr uint64_t kNumSeeds = 1500;

/// For the last line that the program prints.
struct Played {
  int64_t events = 0;
  int64_t violations = 0;
};
Played played;

TEST(SchedulerSimulation, Holds) {
  Totals totals;
  int64_t violations = 0;
  for (uint64_t seed = 1; seed <= kNumSeeds; ++seed) {
    if (const auto wrong = play_seed(seed, totals)) {
      ADD_FAILURE() << *wrong;
      ++violations;
    }
  }
  fmt::print(
      "tokens={} hits={} evictions={} preemptions={} copies={} waits={} cancelled_in_flight={} "
      "refused={} shared_starts={}\n",
      totals.tokens, totals.hits, totals.evictions, totals.preemptions, totals.copies, totals.waits,
      totals.cancelled_in_flight, totals.refused, totals.shared_starts);
  fmt::print(
      "placeholders={} accepted_drafts={} rejected_drafts={} swapped_out={} swapped_in={} "
      "preemptions_swapped={} tier_hits={} "
      "tier_evictions={} flushed={}\n",
      totals.placeholders, totals.accepted_drafts, totals.rejected_drafts, totals.swapped_out,
      totals.swapped_in, totals.preemptions_swapped, totals.tier_hits, totals.tier_evictions,
      totals.flushed);
  // The scenarios reach what they are for.
  EXPECT_GE(totals.events, 500'000);
  EXPECT_GT(totals.hits, 50'000);
  EXPECT_GT(totals.evictions, 1000);
  EXPECT_GT(totals.preemptions, 500);
  EXPECT_GT(totals.copies, 500);
  EXPECT_GT(totals.waits, 300);
  EXPECT_GT(totals.cancelled_in_flight, 500);
  EXPECT_GT(totals.refused, 1000);
  EXPECT_GT(totals.shared_starts, 5000);
  EXPECT_GT(totals.placeholders, 50'000);
  EXPECT_GT(totals.accepted_drafts, 5000);
  EXPECT_GT(totals.rejected_drafts, 5000);
  EXPECT_GT(totals.swapped_out, 5000);
  EXPECT_GT(totals.swapped_in, 1000);
  EXPECT_GT(totals.preemptions_swapped, 200);
  EXPECT_GT(totals.tier_hits, 5000);
  EXPECT_GT(totals.tier_evictions, 500);
  EXPECT_GT(totals.flushed, 500);
  played = {totals.events, violations};
}

/// What a failure prints can be run as a trace.
TEST(SchedulerSimulation, ScenariosReadAsTraces) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Totals totals;
    std::string trace;
    ASSERT_FALSE(play(random_scenario(seed), totals, &trace));
    const auto wrong = testing::run_trace(trace);
    ASSERT_FALSE(wrong) << *wrong;
  }
}

}  // namespace
}  // namespace quire::sched::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  fmt::print("events={} seeds={} violations={}\n", quire::sched::sim::played.events,
             quire::sched::sim::kNumSeeds, quire::sched::sim::played.violations);
  return status;
}
