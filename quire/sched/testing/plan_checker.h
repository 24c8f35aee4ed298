// PlanChecker: whether a BatchPlan keeps every promise of its type, seen from the runner's side.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quire/kv/block_pool.h"
#include "quire/sched/batch_plan.h"
#include "quire/sched/scheduler_options.h"

namespace quire::sched::testing {

class PlanChecker {
 public:
  explicit PlanChecker(const SchedulerOptions& options);

  /// The first broken promise, or nothing. `pool` as it is just after plan(). Plans come in order.
  std::optional<std::string> check(const BatchPlan& plan, const kv::BlockPool& pool);
  /// The same of a plan that flushes the cache.
  std::optional<std::string> check_flush(const BatchPlan& plan, const kv::BlockPool& pool);
  /// What the earliest step checked and not yet told of has sampled.
  void sampled(const BatchPlan& plan, std::span<const SampledToken> tokens);

 private:
  /// What a runner knows of a row.
  struct Row {
    bool held = false;
    SequenceId sequence;
    std::vector<int32_t> tokens;
    int32_t num_prompt = 0;
    int32_t num_pending = 0;  // tokens behind those known, which plans in flight sample
    int32_t num_planned() const { return static_cast<int32_t>(tokens.size()) + num_pending; }
    int32_t num_computed = 0;
    std::vector<int32_t> drafts = {};  // being tried in a plan in flight
    int32_t num_before = 0;  // computed when it last lost its row; kept if it was swapped out
  };
  using Wrong = std::optional<std::string>;

  Wrong check_sizes(const BatchPlan& plan) const;
  Wrong change_rows(const BatchPlan& plan);
  Wrong check_row(const BatchPlan& plan, size_t index, const kv::BlockPool& pool);
  Wrong take_over(const BatchPlan& plan, size_t index, const kv::BlockPool& pool);
  Wrong check_tokens(const BatchPlan& plan, const PlanRow& planned, const Row& row);
  Wrong check_blocks(const BatchPlan& plan, size_t index, const kv::BlockPool& pool) const;
  static bool is_wanted(const Row& row, int32_t position);
  Wrong check_uses(const BatchPlan& plan) const;
  Wrong check_block_ops(const BatchPlan& plan, const kv::BlockPool& pool);
  Wrong check_block_op(const BlockOp& op, const kv::BlockPool& pool) const;
  Wrong check_all_due_are_sampled(const BatchPlan& plan) const;

  SchedulerOptions options_;
  std::vector<Row> rows_;                     // by row id
  std::map<SequenceId, int32_t> num_before_;  // of those without a row
  std::vector<int64_t> slot_steps_;           // by slot: the last step that wrote it
  std::vector<bool> swapped_in_;              // by block: since it was written last
};

}  // namespace quire::sched::testing
