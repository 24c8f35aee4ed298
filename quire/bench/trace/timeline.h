// Timeline: what a scheduler did with a request mix, step by step: who ran, in which blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/bench/trace/trace_script.h"
#include "quire/kv/block_pool.h"
#include "quire/sched/batch_plan.h"

namespace quire::bench {

/// One entry of a block table.
struct TimelineBlock {
  kv::BlockId id = kv::kNoBlock;
  int32_t num_filled = 0;  // slots that hold a token once the step is done
  int32_t num_new = 0;     // the last of them, written in this step
  bool shared = false;     // another sequence holds the block too
  bool copied = false;     // its bytes were copied in this step from a block that stayed shared
};

/// A sequence that holds a row in a step.
struct TimelineRow {
  sched::SequenceId sequence = {};
  sched::RowId row = 0;
  int32_t num_tokens = 0;         // run in this step; 0: the budget went to others
  int32_t context_len = 0;        // tokens in the KV cache once the step is done
  int32_t num_prompt_tokens = 0;  // of num_tokens, those of the prompt
  int32_t num_cached = 0;         // started in this step with so many tokens already in the cache
  int32_t num_output = 0;         // tokens sampled so far, this step's included
  bool sampled = false;           // the step brought it a token
  bool started = false;
  bool ended = false;  // its row and blocks are free in the next step
  std::vector<TimelineBlock> blocks = {};
};

struct TimelineStep {
  std::vector<TimelineRow> rows;  // by row
  std::vector<sched::SequenceId> waiting;
  std::vector<sched::SequenceId> preempted;  // had a row in the step before and lost it
  std::vector<sched::BlockOp> block_ops;
  int32_t num_tokens = 0;
  int32_t num_free = 0;  // blocks, while the step runs
};

struct Timeline {
  sched::SchedulerOptions options;
  std::vector<std::string> names;  // by request id
  std::vector<int32_t> choices;    // by request id
  std::vector<TimelineStep> steps;

  /// "a", or "a.1" for a choice of several.
  std::string name(sched::SequenceId sequence) const;
  /// All that ever ran, in the order of their ids.
  std::vector<sched::SequenceId> sequences() const;
};

/// Runs a script on the scheduler, without a model. Throws LoadError for a request that could never
/// run and for a script of more than 10,000 steps.
Timeline record_timeline(const TraceScript& script);

/// For a terminal: the picture by rows, and the block tables of each step.
std::string timeline_text(const Timeline& timeline);
/// For a page: rows over steps, and below it the KV cache, block by block over the same steps.
std::string timeline_svg(const Timeline& timeline);

}  // namespace quire::bench
