#include "quire/runner/model_runner.h"

#include "quire/base/check.h"

namespace quire::runner {

using sched::BatchPlan;
using sched::LogitsUse;

namespace {

backend::BlockCopy::Kind copy_kind(sched::BlockOp::Kind kind) {
  switch (kind) {
    case sched::BlockOp::Kind::kCopy:
      return backend::BlockCopy::Kind::kWithinPool;
    case sched::BlockOp::Kind::kSwapOut:
      return backend::BlockCopy::Kind::kSwapOut;
    case sched::BlockOp::Kind::kSwapIn:
      return backend::BlockCopy::Kind::kSwapIn;
    case sched::BlockOp::Kind::kLoad:
    case sched::BlockOp::Kind::kStore:
      break;
  }
  check_failed(__FILE__, __LINE__, "copy_kind", "a block operation that no plan has");
}

}  // namespace

ModelRunner::ModelRunner(Options options, backend::Backend& backend)
    : options_(options),
      backend_(backend),
      sampler_({.vocab_size = options.vocab_size,
                .max_rows = options.max_num_seqs,
                .num_workers = backend.num_workers()}) {}

void ModelRunner::launch(const BatchPlan& plan) {
  QUIRE_CHECK(plan_ == nullptr);
  for (const sched::RowStart& row : plan.started) sampler_.start(row);
  copy_blocks(plan);
  plan_ = &plan;
  if (plan.tokens.empty()) return;  // block operations alone
  if (options_.poisoned != nullptr) poison_begun_blocks(plan);
  bind(plan);
  backend_.launch({.token_ids = plan.tokens,
                   .positions = plan.positions,
                   .query_start = query_start_,
                   .context_len = context_len_,
                   .logits_rows = plan.logits_rows,
                   .groups = groups_});
}

void ModelRunner::copy_blocks(const BatchPlan& plan) {
  if (plan.block_ops.empty()) return;
  copies_.clear();
  for (const sched::BlockOp& op : plan.block_ops) {
    copies_.push_back({.kind = copy_kind(op.kind),
                       .group = op.group,
                       .source = op.source,
                       .destination = op.destination});
    if (op.kind != sched::BlockOp::Kind::kSwapOut) continue;
    QUIRE_CHECK(options_.swap != nullptr);
    options_.swap->reserve(op.destination);
  }
  backend_.copy_blocks(copies_);
}

/// A block whose first slot is written holds nothing yet: no copy fills it up to there.
void ModelRunner::poison_begun_blocks(const BatchPlan& plan) {
  for (size_t group = 0; group < plan.groups.size(); ++group) {
    for (const int32_t slot : plan.groups[group].slots) {
      if (slot >= 0 && slot % options_.block_tokens == 0) {
        options_.poisoned->poison(group, slot / options_.block_tokens);
      }
    }
  }
}

void ModelRunner::bind(const BatchPlan& plan) {
  query_start_.clear();
  context_len_.clear();
  for (const sched::PlanRow& row : plan.rows) {
    query_start_.push_back(row.query_start);
    context_len_.push_back(row.context_len);
  }
  query_start_.push_back(static_cast<int32_t>(plan.tokens.size()));
  groups_.clear();
  for (const sched::GroupPlan& group : plan.groups) {
    groups_.push_back({.slots = group.slots,
                       .block_tables = group.block_table,
                       .table_width = group.table_width});
  }
}

StepOutput& ModelRunner::finish() {
  QUIRE_CHECK(plan_ != nullptr);
  if (!plan_->tokens.empty()) backend_.wait();
  const std::vector<LogitsUse>& uses = plan_->uses;
  chosen_.assign(uses.size(), 0);
  bool described = false;
  for (const LogitsUse& use : uses) described = described || sampler_.num_logprobs(use) >= 0;
  output_.logprobs.clear();
  if (described) output_.logprobs.resize(uses.size(), {.chosen = {.token = -1}, .top = {}});
  if (!uses.empty()) {
    backend_.parallel([this](int worker, int num_workers) { read_logits(worker, num_workers); });
  }
  output_.tokens.clear();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].kind == LogitsUse::Kind::kSample) output_.tokens.push_back({.token = chosen_[i]});
  }
  plan_ = nullptr;
  return output_;
}

/// Worker w takes uses w, w + num_workers, ...; a row is sampled by one use of a step at most.
void ModelRunner::read_logits(int worker, int num_workers) {
  const std::vector<LogitsUse>& uses = plan_->uses;
  for (size_t i = static_cast<size_t>(worker); i < uses.size();
       i += static_cast<size_t>(num_workers)) {
    const LogitsUse& use = uses[i];
    const std::span<const float> logits(
        backend_.logits() + use.logits_index * backend_.logits_stride(),
        static_cast<size_t>(options_.vocab_size));
    const bool samples = use.kind == LogitsUse::Kind::kSample;
    chosen_[i] = samples ? sampler_.sample(use, logits, worker) : use.target;
    const int32_t num_top = sampler_.num_logprobs(use);
    if (num_top >= 0) {
      sampler_.describe(logits, chosen_[i], num_top, worker, output_.logprobs[i]);
    }
  }
}

}  // namespace quire::runner
