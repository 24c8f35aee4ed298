#include "quire/backend/cpu/step_profile.h"

#include <algorithm>
#include <utility>

namespace quire::backend::cpu {

StepTimer::StepTimer(std::vector<Phase> phases, int64_t num_ops, int num_workers)
    : phases_(std::move(phases)) {
  const auto ops = static_cast<size_t>(num_ops);
  for (int worker = 0; worker < num_workers; ++worker) {
    busy_.push_back(std::make_unique<int64_t[]>(ops));
  }
  profile_.num_workers = num_workers;
  profile_.phases.resize(phases_.size());
  profile_.work.resize(phases_.size() * static_cast<size_t>(num_workers));
  profile_.op_ns.resize(ops);
}

void StepTimer::begin_step() {
  const int64_t now = steady_ns();
  profile_.step = {now, now};
  std::fill(profile_.phases.begin(), profile_.phases.end(), TimeSpan{now, now});
  std::fill(profile_.work.begin(), profile_.work.end(), TimeSpan{now, now});
  std::fill(profile_.op_ns.begin(), profile_.op_ns.end(), 0);
  for (const auto& worker : busy_) std::fill_n(worker.get(), profile_.op_ns.size(), 0);
}

void StepTimer::enter(size_t phase, int worker) {
  const auto index =
      phase * static_cast<size_t>(profile_.num_workers) + static_cast<size_t>(worker);
  profile_.work[index].begin_ns = profile_.work[index].end_ns = steady_ns();
}

void StepTimer::leave(size_t phase, int worker) {
  profile_.work[phase * static_cast<size_t>(profile_.num_workers) + static_cast<size_t>(worker)]
      .end_ns = steady_ns();
}

/// Gives each operation of `phase`, whose op_ns hold `busy` in all, its part of `wall`. Cut at
/// running sums, so that the parts add up to the whole.
void StepTimer::share_out(const Phase& phase, int64_t wall, int64_t busy) {
  int64_t until = 0;   // busy time up to and with this operation
  int64_t shared = 0;  // of wall
  for (int32_t op = phase.first_op; op < phase.last_op; ++op) {
    int64_t& ns = profile_.op_ns[static_cast<size_t>(op)];
    until += ns;
    const double part = busy == 0 ? 0.0 : static_cast<double>(until) / static_cast<double>(busy);
    const int64_t end =
        op + 1 == phase.last_op ? wall : static_cast<int64_t>(static_cast<double>(wall) * part);
    ns = end - shared;
    shared = end;
  }
}

// A phase ends when the last worker leaves it, by that worker's clock: worker 0 may be off its
// processor just then.
void StepTimer::end_step() {
  profile_.step.end_ns = steady_ns();
  int64_t end = profile_.step.begin_ns;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const int64_t begin = end;
    for (int worker = 0; worker < profile_.num_workers; ++worker) {
      end = std::max(end, profile_.work_of(i, worker).end_ns);
    }
    profile_.phases[i] = {begin, end};
    const Phase& phase = phases_[i];
    int64_t busy = 0;
    for (int32_t op = phase.first_op; op < phase.last_op; ++op) {
      int64_t& ns = profile_.op_ns[static_cast<size_t>(op)];
      for (const auto& worker : busy_) ns += worker[static_cast<size_t>(op)];
      busy += ns;
    }
    share_out(phase, end - begin, busy);
  }
}

}  // namespace quire::backend::cpu
