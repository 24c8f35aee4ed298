// Scenario: a life of a scheduler as data: its limits and what happens to it, made up from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/sched/scheduler_options.h"
#include "quire/sched/testing/arrival.h"

namespace quire::sched::sim {

struct Event {
  /// kHalfStep plans a step or, if as many as allowed are in flight, runs and commits the earliest;
  /// with fewer in flight `value` decides. kRestart steps until all have ended, writes the cache to
  /// the swap space and begins anew with that.
  enum class Kind : uint8_t { kSubmit, kCancel, kBudget, kRestart, kHalfStep };
  Kind kind = Kind::kHalfStep;
  testing::Arrival arrival = {};
  int32_t value = 0;  // kCancel: the request; kBudget: tokens a step; kHalfStep: 1 = rather run
};

struct Scenario {
  SchedulerOptions options = {};
  int32_t num_drafts = 0;  // offered for each token
  std::vector<Event> events = {};
};

/// Pools of 7 to 512 blocks of 1 to 128 tokens, budgets of 1 to 4096 tokens, prefix cache on and
/// off (also with colliding hashes), no swap space or one of 1 to 300 blocks, all ways of
/// preemption, 1 to 4 plans in flight, 0 to 4 drafts a row, both policies; requests whose prompts
/// begin alike.
Scenario random_scenario(uint64_t seed);

/// The options as the first statement of a trace.
std::string text_of(const Scenario& scenario);

}  // namespace quire::sched::sim
