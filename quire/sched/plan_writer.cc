#include "quire/sched/plan_writer.h"

#include <algorithm>
#include <cstddef>

namespace quire::sched {

PlanWriter::PlanWriter(const SchedulerOptions& options) {
  const auto tokens = static_cast<size_t>(options.max_num_batched_tokens);
  const auto rows = static_cast<size_t>(options.max_num_seqs);
  const auto logits = static_cast<size_t>(options.max_logits_rows);
  const auto width = static_cast<size_t>(
      std::min(options.max_model_len / options.block_tokens + 1, options.num_blocks));
  plan_.finished.reserve(rows);
  plan_.rows.reserve(rows);
  plan_.tokens.reserve(tokens);
  plan_.positions.reserve(tokens);
  plan_.groups.resize(1);
  plan_.groups[0].slots.reserve(tokens);
  plan_.groups[0].block_table.reserve(std::min(rows, tokens) * width);
  plan_.logits_rows.reserve(logits);
  plan_.uses.reserve(logits + rows);
  // Copies of shared blocks; with a swap space, also moves out of the blocks taken and back in.
  const auto blocks = static_cast<size_t>(options.num_swap_blocks > 0 ? options.num_blocks : 0);
  plan_.block_ops.reserve(rows + 2 * blocks);
  row_sequences_.reserve(rows);
}

void PlanWriter::begin(StepId step) {
  plan_.step = step;
  plan_.started.clear();
  plan_.finished.clear();
  plan_.rows.clear();
  plan_.tokens.clear();
  plan_.positions.clear();
  plan_.groups[0].slots.clear();
  plan_.groups[0].block_table.clear();
  plan_.groups[0].table_width = 0;
  plan_.logits_rows.clear();
  plan_.uses.clear();
  plan_.block_ops.clear();
  row_sequences_.clear();
}

void PlanWriter::start(const Sequence& sequence) {
  const auto prompt_end = sequence.tokens.begin() + sequence.num_prompt;
  plan_.started.push_back({.row = sequence.row,
                           .sequence = sequence.id,
                           .sampling = sequence.group->sampling,
                           .prompt = {sequence.tokens.begin(), prompt_end},
                           .output = {prompt_end, sequence.tokens.end()}});
}

void PlanWriter::block_op(BlockOp::Kind kind, kv::BlockCopy copy) {
  plan_.block_ops.push_back(
      {.kind = kind, .group = 0, .source = copy.source, .destination = copy.destination});
}

void PlanWriter::run(const Sequence& sequence, int32_t num_tokens, int32_t num_draft) {
  const int32_t begin = sequence.num_computed;
  const int32_t end = begin + num_tokens + num_draft;
  plan_.rows.push_back({.row = sequence.row,
                        .query_start = static_cast<int32_t>(plan_.tokens.size()),
                        .num_tokens = end - begin,
                        .context_len = end,
                        .num_draft = num_draft});
  row_sequences_.push_back(&sequence);
  const int32_t known = std::min(end, sequence.num_tokens());
  if (begin < known) {
    plan_.tokens.insert(plan_.tokens.end(), sequence.tokens.begin() + begin,
                        sequence.tokens.begin() + known);
  }
  plan_.tokens.resize(plan_.positions.size() + static_cast<size_t>(num_tokens), kPlaceholderToken);
  plan_.tokens.insert(plan_.tokens.end(), sequence.drafts.begin(),
                      sequence.drafts.begin() + num_draft);
  for (int32_t position = begin; position < end; ++position) {
    plan_.positions.push_back(position);
    plan_.groups[0].slots.push_back(sequence.table.slot(position));
  }
  GroupPlan& group = plan_.groups[0];
  group.table_width = std::max(group.table_width, sequence.table.size());
}

int32_t PlanWriter::logits_index(int32_t position) {
  const PlanRow& row = plan_.rows.back();
  const int32_t token = row.query_start + position - (row.context_len - row.num_tokens);
  if (plan_.logits_rows.empty() || plan_.logits_rows.back() != token) {
    plan_.logits_rows.push_back(token);
  }
  return static_cast<int32_t>(plan_.logits_rows.size()) - 1;
}

void PlanWriter::report_prompt_logprobs(const Sequence& sequence, PromptLogprobs positions) {
  for (int32_t position = positions.first; position < positions.last; ++position) {
    plan_.uses.push_back({.kind = LogitsUse::Kind::kPromptLogprob,
                          .row = sequence.row,
                          .logits_index = logits_index(position - 1),
                          .position = position,
                          .target = sequence.tokens[static_cast<size_t>(position)]});
  }
}

void PlanWriter::sample(const Sequence& sampler, int32_t count) {
  const int32_t end = plan_.rows.back().context_len;
  for (int32_t position = end - count + 1; position <= end; ++position) {
    plan_.uses.push_back({.kind = LogitsUse::Kind::kSample,
                          .row = sampler.row,
                          .logits_index = logits_index(position - 1),
                          .position = position,
                          .target = -1});
  }
}

const BatchPlan& PlanWriter::finish(RowPool& rows) {
  rows.take_given_up(plan_.finished);
  GroupPlan& group = plan_.groups[0];
  for (const Sequence* sequence : row_sequences_) {
    const auto blocks = sequence->table.blocks();
    group.block_table.insert(group.block_table.end(), blocks.begin(), blocks.end());
    group.block_table.insert(group.block_table.end(),
                             static_cast<size_t>(group.table_width) - blocks.size(), kv::kNoBlock);
  }
  return plan_;
}

}  // namespace quire::sched
