#include "quire/backend/cpu/step_profile.h"

#include <algorithm>
#include <utility>

namespace quire::backend::cpu {

StepTimer::StepTimer(const Program& program, std::vector<Phase> phases, int num_workers)
    : phases_(std::move(phases)) {
  for (const Op& op : program.ops) {
    const bool matmul = op.kind == OpKind::kMatmul;
    weight_bytes_.push_back(matmul ? program.weights[static_cast<size_t>(op.weight)]->bytes() : 0);
  }
  for (int worker = 0; worker < num_workers; ++worker) {
    busy_.push_back(std::make_unique<int64_t[]>(program.ops.size()));
  }
  profile_.num_workers = num_workers;
  profile_.phases.resize(phases_.size());
  profile_.work.resize(phases_.size() * static_cast<size_t>(num_workers));
  profile_.op_ns.resize(program.ops.size());
}

void StepTimer::begin_step() {
  const int64_t now = steady_ns();
  profile_.step = {now, now};
  std::fill(profile_.work.begin(), profile_.work.end(), TimeSpan{now, now});
  for (const auto& worker : busy_) std::fill_n(worker.get(), profile_.op_ns.size(), 0);
}

void StepTimer::note(size_t phase, int worker, const TimeSpan& span) {
  TimeSpan& work =
      profile_
          .work[phase * static_cast<size_t>(profile_.num_workers) + static_cast<size_t>(worker)];
  if (work.duration() == 0) work.begin_ns = span.begin_ns;
  work.end_ns = span.end_ns;
}

// A phase ends with the last items of it, by the clock of the worker that was at them.
void StepTimer::end_step() {
  profile_.step.end_ns = steady_ns();
  int64_t end = profile_.step.begin_ns;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const int64_t begin = end;
    for (int worker = 0; worker < profile_.num_workers; ++worker) {
      end = std::max(end, profile_.work_of(i, worker).end_ns);
    }
    profile_.phases[i] = {begin, end};
    share_out(phases_[i], end - begin);
  }
}

/// Cut at running sums, so that the parts add up to the whole.
void StepTimer::share_out(const Phase& phase, int64_t wall) {
  const auto part_of = [&](int32_t op) {
    const auto index = static_cast<size_t>(op);
    if (phase.kind == Phase::Kind::kMatmuls) return weight_bytes_[index];
    int64_t busy = 0;
    for (const auto& worker : busy_) busy += worker[index];
    return busy;
  };
  int64_t all = 0;
  for (int32_t op = phase.first_op; op < phase.last_op; ++op) all += part_of(op);
  int64_t until = 0;   // parts up to and with this operation's
  int64_t shared = 0;  // of wall
  for (int32_t op = phase.first_op; op < phase.last_op; ++op) {
    until += part_of(op);
    const double share = all == 0 ? 0.0 : static_cast<double>(until) / static_cast<double>(all);
    const int64_t end =
        op + 1 == phase.last_op ? wall : static_cast<int64_t>(static_cast<double>(wall) * share);
    profile_.op_ns[static_cast<size_t>(op)] = end - shared;
    shared = end;
  }
}

}  // namespace quire::backend::cpu
