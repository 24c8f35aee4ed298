// PlanWriter: lays what the scheduler decides out as a BatchPlan, in buffers kept from step to
// step.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/kv/block_table.h"
#include "quire/sched/batch_plan.h"
#include "quire/sched/chunk.h"
#include "quire/sched/row_pool.h"
#include "quire/sched/scheduler_options.h"
#include "quire/sched/sequence.h"

namespace quire::sched {

class PlanWriter {
 public:
  /// Buffers are sized for the largest step that `options` allow.
  explicit PlanWriter(const SchedulerOptions& options);

  /// Empties the plan.
  void begin(StepId step);
  /// Nothing is to be run, moved or started.
  bool empty() const {
    return plan_.rows.empty() && plan_.block_ops.empty() && plan_.started.empty();
  }

  /// The sequence, which has just got its row, begins to hold it.
  void start(const Sequence& sequence);
  void block_op(BlockOp::Kind kind, kv::BlockCopy copy);
  /// The sequence runs its next `num_tokens` uncomputed tokens and behind them its first
  /// `num_draft` drafts; its table already covers them.
  void run(const Sequence& sequence, int32_t num_tokens, int32_t num_draft);
  /// The row just added yields the log-probabilities of these prompt positions...
  void report_prompt_logprobs(const Sequence& sequence, PromptLogprobs positions);
  /// ...and the logits of its last `count` tokens are sampled by `sampler`: the sequence itself or
  /// another choice.
  void sample(const Sequence& sampler, int32_t count);

  /// Completes the plan with the rows given up and the block tables.
  const BatchPlan& finish(RowPool& rows);

 private:
  /// The index in logits_rows of the current row's token at `position`.
  int32_t logits_index(int32_t position);

  BatchPlan plan_;
  std::vector<const Sequence*> row_sequences_;  // [rows]
};

}  // namespace quire::sched
