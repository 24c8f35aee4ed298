// Simulator: plays scenarios on a real scheduler with a fake model, checks all that must hold after
// every event, and shrinks a scenario that fails to a short one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "quire/sched/sim/scenario.h"

namespace quire::sched::sim {

/// What the scenarios played so far have reached.
struct Totals {
  int64_t events = 0;
  int64_t tokens = 0;  // computed
  int64_t hits = 0;    // tokens not computed
  int64_t evictions = 0;
  int64_t preemptions = 0;
  int64_t copies = 0;
  int64_t waits = 0;  // rows that started in a step without a token in it
  int64_t cancelled_in_flight = 0;
  int64_t refused = 0;
  int64_t shared_starts = 0;  // choices that started on a prompt computed for all
  int64_t placeholders = 0;   // tokens planned before they were known
  int64_t accepted_drafts = 0;
  int64_t rejected_drafts = 0;
  int64_t swapped_out = 0;  // blocks copied
  int64_t swapped_in = 0;
  int64_t preemptions_swapped = 0;
  int64_t tier_hits = 0;  // tokens
  int64_t tier_evictions = 0;
  int64_t flushed = 0;  // blocks copied before a restart
};

/// Plays the events, then steps until all requests have ended. Checked are the invariants of
/// Scheduler and BlockPool, every promise of BatchPlan, that no slot is read which does not hold
/// the row's token, that each token is the one computed alone, the bounds on steps and preemptions
/// under first-come, and that nothing is held at the end. Returns what went wrong first; the
/// statements of the trace that led to it are appended to `trace`, if given.
std::optional<std::string> play(const Scenario& scenario, Totals& totals,
                                std::string* trace = nullptr);

/// Leaves out what is not needed for a failing scenario to fail.
Scenario shrink(Scenario scenario);

/// Plays the scenario of a seed. If it fails: the seed, what went wrong and a shrunk trace.
std::optional<std::string> play_seed(uint64_t seed, Totals& totals);

}  // namespace quire::sched::sim
