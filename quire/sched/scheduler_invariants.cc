// What must hold between the scheduler's lists, rows and blocks after every event.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "quire/sched/scheduler.h"

namespace quire::sched {
namespace {

std::string name(const Sequence& sequence) {
  return fmt::format("{}.{}", sequence.id.request, sequence.id.choice);
}

/// What is wrong with one sequence taken alone.
std::optional<std::string> check(const Sequence& s, const kv::BlockPool& pool) {
  const bool runs = s.state == SequenceState::kRunning || s.state == SequenceState::kLeaving;
  if (runs != (s.row != kNoRow)) return fmt::format("{}: row {}", name(s), s.row);
  const bool is_swapped = s.state == SequenceState::kWaiting && s.num_computed > 0;
  if (s.swapped.size() != (is_swapped ? pool.blocks_for(s.num_computed) : 0)) {
    return fmt::format("{}: {} swap blocks for {} computed tokens", name(s), s.swapped.size(),
                       s.num_computed);
  }
  if (s.table.size() != (runs ? pool.blocks_for(s.num_computed) : 0)) {
    return fmt::format("{}: {} blocks for {} computed tokens", name(s), s.table.size(),
                       s.num_computed);
  }
  const bool is_ahead = s.num_computed > s.num_planned() || s.num_planned() > s.max_tokens;
  if (s.num_computed < 0 || s.num_pending < 0 || (is_ahead && s.state != SequenceState::kLeaving)) {
    return fmt::format("{}: {} of {} tokens computed, {} at most", name(s), s.num_computed,
                       s.num_tokens(), s.max_tokens);
  }
  return std::nullopt;
}

/// Whether each block of `pool` has as many references as `held` says it has holders.
std::optional<std::string> check_holders(const kv::BlockPool& pool,
                                         const std::vector<int32_t>& held, std::string_view what) {
  for (kv::BlockId block = 0; block < pool.num_blocks(); ++block) {
    const int32_t holders = held[static_cast<size_t>(block)];
    if (holders == pool.ref_count(block)) continue;
    return fmt::format("{} {} has {} references and {} holders", what, block, pool.ref_count(block),
                       holders);
  }
  return pool.check_invariants();
}

}  // namespace

/// Whether each running sequence waits for as many tokens as the plans in flight sample for it.
std::optional<std::string> Scheduler::check_pending() const {
  for (const Sequence* sequence : running_) {
    if (sequence->state != SequenceState::kRunning) continue;
    int32_t num_samples = 0;
    for (StepId step = oldest_step(); step < next_step_; ++step) {
      for (const Outcome& outcome : step_of(step).outcomes) {
        if (outcome.sequence == sequence) num_samples += outcome.num_samples;
      }
    }
    if (num_samples == sequence->num_pending) continue;
    return fmt::format("{}: {} tokens pending, {} being sampled", name(*sequence),
                       sequence->num_pending, num_samples);
  }
  return std::nullopt;
}

std::optional<std::string> Scheduler::check_invariants() const {
  std::vector<int32_t> held(static_cast<size_t>(pool_.num_blocks()));
  std::vector<int32_t> held_swapped(static_cast<size_t>(options_.num_swap_blocks));
  std::vector<int32_t> row_holders(static_cast<size_t>(options_.max_num_seqs));
  size_t num_running = 0;
  size_t num_waiting = 0;
  int32_t num_unended = 0;
  for (const auto& [id, group] : groups_) {
    for (const Sequence& s : group->choices) {
      if (s.state != SequenceState::kShared) {
        if (auto wrong = check(s, pool_)) return wrong;
      }
      for (const kv::BlockId block : s.table.blocks()) ++held[static_cast<size_t>(block)];
      for (const kv::BlockId block : s.swapped.blocks()) ++held_swapped[static_cast<size_t>(block)];
      if (s.row != kNoRow && ++row_holders[static_cast<size_t>(s.row)] > 1) {
        return fmt::format("row {} is held twice", s.row);
      }
      num_running += s.row != kNoRow ? 1 : 0;
      num_waiting += s.state == SequenceState::kWaiting ? 1 : 0;
      num_unended += s.state != SequenceState::kEnded ? 1 : 0;
    }
  }
  if (auto wrong = check_holders(pool_, held, "block")) return wrong;
  if (swap_pool_) {
    if (auto wrong = check_holders(*swap_pool_, held_swapped, "swap block")) return wrong;
  }
  if (num_running != running_.size() || num_waiting != waiting_.size() ||
      num_unended != num_unended_) {
    return fmt::format("{} run, {} wait, {} not ended; booked {}, {}, {}", num_running, num_waiting,
                       num_unended, running_.size(), waiting_.size(), num_unended_);
  }
  if (auto wrong = check_pending()) return wrong;
  const auto in_order = [](const Sequence* a, const Sequence* b) { return runs_before(*a, *b); };
  if (!std::is_sorted(running_.begin(), running_.end(), in_order)) return "running is out of order";
  if (!std::is_sorted(waiting_.begin(), waiting_.end(), in_order)) return "waiting is out of order";
  return std::nullopt;
}

}  // namespace quire::sched
