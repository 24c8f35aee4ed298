// Bugs planted in scheduler and KV manager (sched_mutants.py), each of which the simulator must
// find; it is only worth what it catches.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "mutants.h"
#include "quire/sched/sim/simulator.h"

namespace quire::sched::sim {
namespace {

constexpr uint64_t kNumSeeds = 600;

bool finds_something(uint64_t num_seeds) {
  Totals totals;
  for (uint64_t seed = 1; seed <= num_seeds; ++seed) {
    if (play(random_scenario(seed), totals)) return true;
  }
  return false;
}

class Mutants : public ::testing::TestWithParam<int> {};

/// In a process of its own: a failed QUIRE_CHECK, which ends it, is a catch too. A hang is not.
TEST_P(Mutants, AreCaught) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    active_mutant = GetParam();
    _exit(finds_something(kNumSeeds) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const bool found = WIFEXITED(status) && WEXITSTATUS(status) == 1;
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  EXPECT_TRUE(found || aborted) << "status " << status;
}

INSTANTIATE_TEST_SUITE_P(All, Mutants,
                         ::testing::Range(1, 1 + static_cast<int>(std::size(kMutants))),
                         [](const auto& mutant) -> std::string {
                           return kMutants[mutant.param - 1];
                         });

TEST(NoMutant, NothingIsFoundWithoutThem) {
  EXPECT_FALSE(finds_something(100));
}

}  // namespace
}  // namespace quire::sched::sim
