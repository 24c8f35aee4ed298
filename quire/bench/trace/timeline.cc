#include "quire/bench/trace/timeline.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/bench/step_driver.h"

namespace quire::bench {
namespace {

constexpr size_t kMostSteps = 10000;

class Recorder {
 public:
  explicit Recorder(const TraceScript& script) : script_(script), driver_(script.options) {
    timeline_.options = script.options;
    timeline_.names = script.names;
  }

  Timeline run();

 private:
  void submit(const sched::Request& request);
  bool step();
  void change_rows(const sched::BatchPlan& plan, TimelineStep& step);
  void read_rows(const sched::BatchPlan& plan);
  void read_blocks(const sched::BatchPlan& plan, size_t index, TimelineRow& row) const;
  void commit(TimelineStep& step);

  const TraceScript& script_;
  StepDriver driver_;
  Timeline timeline_;
  std::map<sched::RowId, TimelineRow> held_;
  std::map<sched::SequenceId, int32_t> num_output_;
  std::map<sched::RequestId, int32_t> num_prompt_;
};

void Recorder::submit(const sched::Request& request) {
  if (const auto error = driver_.submit(request)) {
    throw LoadError("request " + script_.names[static_cast<size_t>(request.id)], error->message);
  }
  timeline_.choices.resize(static_cast<size_t>(request.id) + 1, 1);
  timeline_.choices.back() = request.n;
  num_prompt_[request.id] = static_cast<int32_t>(request.prompt.size());
}

// A row given up by a sequence that had not ended was preempted.
void Recorder::change_rows(const sched::BatchPlan& plan, TimelineStep& step) {
  for (const sched::RowId row : plan.finished) {
    const auto held = held_.find(row);
    if (held == held_.end()) continue;
    if (!held->second.ended) step.preempted.push_back(held->second.sequence);
    held_.erase(held);
  }
  for (auto& [row, held] : held_) {
    held.num_tokens = held.num_prompt_tokens = held.num_cached = 0;
    held.sampled = held.started = false;
    for (TimelineBlock& block : held.blocks) block.num_new = 0;
  }
  for (const sched::RowStart& start : plan.started) {
    held_[start.row] = {.sequence = start.sequence, .row = start.row, .started = true};
  }
}

void Recorder::read_rows(const sched::BatchPlan& plan) {
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const sched::PlanRow& planned = plan.rows[i];
    TimelineRow& row = held_[planned.row];
    const int32_t begin = planned.context_len - planned.num_tokens;
    const int32_t num_prompt = num_prompt_.at(row.sequence.request);
    if (row.started) row.num_cached = begin;
    row.num_tokens = planned.num_tokens;
    row.context_len = planned.context_len;
    row.num_prompt_tokens = std::clamp(num_prompt - begin, 0, planned.num_tokens);
    read_blocks(plan, i, row);
  }
}

void Recorder::read_blocks(const sched::BatchPlan& plan, size_t index, TimelineRow& row) const {
  const sched::GroupPlan& group = plan.groups[0];
  const int32_t block_tokens = timeline_.options.block_tokens;
  const int32_t begin = row.context_len - row.num_tokens;
  row.blocks.clear();
  for (int32_t first = 0; first < row.context_len; first += block_tokens) {
    TimelineBlock block;
    block.id = group.block_table[index * static_cast<size_t>(group.table_width) +
                                 static_cast<size_t>(first / block_tokens)];
    block.num_filled = std::min(block_tokens, row.context_len - first);
    block.num_new = std::clamp(first + block.num_filled - begin, 0, block.num_filled);
    block.copied =
        std::any_of(plan.block_ops.begin(), plan.block_ops.end(), [&](const sched::BlockOp& op) {
          return op.kind == sched::BlockOp::Kind::kCopy && op.destination == block.id;
        });
    row.blocks.push_back(block);
  }
}

void Recorder::commit(TimelineStep& step) {
  for (const sched::CommitEvent& event : driver_.commit()) {
    if (event.token >= 0) ++num_output_[event.sequence];
    for (auto& [row, held] : held_) {
      if (held.sequence != event.sequence) continue;
      held.sampled = event.token >= 0;
      held.ended = event.finish != sched::FinishReason::kNone;
    }
  }
  for (auto& [row, held] : held_) {
    held.num_output = num_output_[held.sequence];
    step.rows.push_back(held);
  }
}

bool Recorder::step() {
  const sched::BatchPlan* plan = driver_.plan();
  if (plan == nullptr) return false;
  if (timeline_.steps.size() == kMostSteps) {
    throw LoadError("trace", fmt::format("more than {} steps", kMostSteps));
  }
  TimelineStep step;
  change_rows(*plan, step);
  read_rows(*plan);
  const kv::BlockPool& pool = driver_.scheduler().pool();
  for (auto& [row, held] : held_) {
    for (TimelineBlock& block : held.blocks) block.shared = pool.ref_count(block.id) > 1;
  }
  step.waiting = driver_.scheduler().waiting();
  step.block_ops = plan->block_ops;
  step.num_tokens = static_cast<int32_t>(plan->tokens.size());
  step.num_free = pool.num_free();
  commit(step);
  timeline_.steps.push_back(std::move(step));
  return true;
}

Timeline Recorder::run() {
  for (const TraceStatement& statement : script_.statements) {
    switch (statement.kind) {
      case TraceStatement::Kind::kSubmit:
        submit(statement.request);
        break;
      case TraceStatement::Kind::kCancel:
        driver_.cancel(statement.id);
        for (auto& [row, held] : held_) {
          held.ended = held.ended || held.sequence.request == statement.id;
        }
        break;
      case TraceStatement::Kind::kSteps:
        for (int32_t i = 0; i < statement.num_steps && step(); ++i) {
        }
        break;
      case TraceStatement::Kind::kRun:
        while (step()) {
        }
        break;
    }
  }
  return std::move(timeline_);
}

}  // namespace

std::string Timeline::name(sched::SequenceId sequence) const {
  const auto index = static_cast<size_t>(sequence.request);
  if (choices[index] == 1) return names[index];
  return fmt::format("{}.{}", names[index], sequence.choice);
}

std::vector<sched::SequenceId> Timeline::sequences() const {
  std::set<sched::SequenceId> all;
  for (const TimelineStep& step : steps) {
    for (const TimelineRow& row : step.rows) all.insert(row.sequence);
  }
  return {all.begin(), all.end()};
}

Timeline record_timeline(const TraceScript& script) {
  return Recorder(script).run();
}

}  // namespace quire::bench
