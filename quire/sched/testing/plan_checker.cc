#include "quire/sched/testing/plan_checker.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include <fmt/format.h>

namespace quire::sched::testing {
namespace {

/// How many hold the blocks of `sequence` from this step on: choice 0, when it completes the
/// prompt, shares them with the choices that start on it.
int32_t holders_of(const BatchPlan& plan, SequenceId sequence) {
  const auto shares = [&](const RowStart& start) {
    return start.sequence.request == sequence.request && start.sequence.choice > 0 &&
           start.output.empty();
  };
  if (sequence.choice > 0) return 1;
  return 1 + static_cast<int32_t>(std::count_if(plan.started.begin(), plan.started.end(), shares));
}

}  // namespace

PlanChecker::PlanChecker(const SchedulerOptions& options)
    : options_(options),
      rows_(static_cast<size_t>(options.max_num_seqs)),
      slot_steps_(static_cast<size_t>(options.pool_tokens()), -1),
      swapped_in_(static_cast<size_t>(options.num_blocks)) {}

PlanChecker::Wrong PlanChecker::check(const BatchPlan& plan, const kv::BlockPool& pool) {
  if (auto wrong = check_sizes(plan)) return wrong;
  if (auto wrong = change_rows(plan)) return wrong;
  if (auto wrong = check_uses(plan)) return wrong;
  if (auto wrong = check_block_ops(plan, pool)) return wrong;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    if (auto wrong = check_row(plan, i, pool)) return wrong;
  }
  if (auto wrong = check_all_due_are_sampled(plan)) return wrong;
  for (const LogitsUse& use : plan.uses) {
    if (use.kind == LogitsUse::Kind::kSample) ++rows_[static_cast<size_t>(use.row)].num_pending;
  }
  for (const PlanRow& row : plan.rows) {
    const auto end = plan.tokens.begin() + row.query_start + row.num_tokens;
    rows_[static_cast<size_t>(row.row)].drafts.assign(end - row.num_draft, end);
  }
  return std::nullopt;
}

PlanChecker::Wrong PlanChecker::check_flush(const BatchPlan& plan, const kv::BlockPool& pool) {
  if (!plan.rows.empty() || !plan.tokens.empty() || !plan.started.empty() || !plan.uses.empty()) {
    return "a flush that runs something";
  }
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind != BlockOp::Kind::kSwapOut) return "a flush that does not copy out";
    if (!pool.is_published(op.source)) return "a block is flushed that is not published";
  }
  if (auto wrong = change_rows(plan)) return wrong;
  return check_block_ops(plan, pool);
}

PlanChecker::Wrong PlanChecker::check_sizes(const BatchPlan& plan) const {
  const auto num_tokens = plan.tokens.size();
  // With others in flight, a step may only move blocks and start rows.
  const bool may_be_empty = options_.max_plans_in_flight > 1;
  if (plan.rows.empty() && plan.block_ops.empty() && plan.started.empty()) return "an empty step";
  if (plan.rows.empty() && !may_be_empty) return "a step that runs nothing";
  if (num_tokens > static_cast<size_t>(options_.max_num_batched_tokens)) return "too many tokens";
  if (plan.logits_rows.size() > static_cast<size_t>(options_.max_logits_rows)) {
    return "too many logits rows";
  }
  if (plan.positions.size() != num_tokens) return "positions and tokens differ in number";
  if (plan.groups.size() != 1) return "one cache group expected";
  const GroupPlan& group = plan.groups[0];
  if (group.slots.size() != num_tokens) return "slots and tokens differ in number";
  if (group.block_table.size() != plan.rows.size() * static_cast<size_t>(group.table_width)) {
    return "the block table is not [rows][table_width]";
  }
  const int32_t end =
      plan.rows.empty() ? 0 : plan.rows.back().query_start + plan.rows.back().num_tokens;
  if (end != static_cast<int32_t>(num_tokens)) return "tokens behind the last row";
  return std::nullopt;
}

PlanChecker::Wrong PlanChecker::change_rows(const BatchPlan& plan) {
  for (const RowId id : plan.finished) {
    Row& row = rows_[static_cast<size_t>(id)];
    if (!row.held) return fmt::format("row {} finished without being held", id);
    num_before_[row.sequence] = row.num_computed;
    row = {};
  }
  for (const RowStart& start : plan.started) {
    if (start.row < 0 || start.row >= options_.max_num_seqs) return "a row id out of range";
    Row& row = rows_[static_cast<size_t>(start.row)];
    if (row.held) return fmt::format("row {} started while held", start.row);
    row.held = true;
    row.sequence = start.sequence;
    row.tokens = start.prompt;
    row.tokens.insert(row.tokens.end(), start.output.begin(), start.output.end());
    row.num_prompt = static_cast<int32_t>(start.prompt.size());
    if (const auto before = num_before_.extract(start.sequence)) row.num_before = before.mapped();
    // Choice 0 has computed the prompt of a choice that starts without output.
    if (start.sequence.choice > 0 && start.output.empty()) row.num_computed = row.num_prompt;
  }
  return std::nullopt;
}

PlanChecker::Wrong PlanChecker::check_row(const BatchPlan& plan, size_t index,
                                          const kv::BlockPool& pool) {
  const PlanRow& planned = plan.rows[index];
  Row& row = rows_[static_cast<size_t>(planned.row)];
  const int32_t start =
      index == 0 ? 0 : plan.rows[index - 1].query_start + plan.rows[index - 1].num_tokens;
  if (!row.held) return fmt::format("row {} runs without being held", planned.row);
  if (planned.num_tokens < 1 || planned.query_start != start) return "rows do not cover the tokens";
  const int32_t first = planned.context_len - planned.num_tokens;
  if (auto wrong = take_over(plan, index, pool)) return wrong;
  if (first != row.num_computed) {
    return fmt::format("row {} runs from position {} with {} computed", planned.row, first,
                       row.num_computed);
  }
  if (auto wrong = check_tokens(plan, planned, row)) return wrong;
  row.num_computed = planned.context_len;
  return check_blocks(plan, index, pool);
}

/// Each token is the one known at its position, or a placeholder for the last one being sampled.
PlanChecker::Wrong PlanChecker::check_tokens(const BatchPlan& plan, const PlanRow& planned,
                                             const Row& row) {
  const int32_t known_end = planned.context_len - planned.num_draft;
  if (known_end > row.num_planned()) return "a token that nobody makes";
  if (!row.drafts.empty()) return "a row runs again while its drafts are tried";
  if (planned.num_draft > 0 && (row.num_pending > 0 || known_end != row.num_planned())) {
    return "drafts behind a token that is not the last";
  }
  for (int32_t i = 0; i < planned.num_tokens; ++i) {
    const size_t t = static_cast<size_t>(planned.query_start) + static_cast<size_t>(i);
    const int32_t position = planned.context_len - planned.num_tokens + i;
    if (plan.positions[t] != position) return "positions are not consecutive";
    const bool is_known = position < static_cast<int32_t>(row.tokens.size());
    const int32_t token = is_known ? row.tokens[static_cast<size_t>(position)] : kPlaceholderToken;
    if (position < known_end && plan.tokens[t] != token) return "a token is wrong";
    if (position >= known_end && plan.tokens[t] < 0) return "no draft";
    if (position < known_end && !is_known && position + 1 != row.num_planned()) {
      return "a placeholder for an older token";
    }
    int64_t& step = slot_steps_[static_cast<size_t>(plan.groups[0].slots[t])];
    if (step == plan.step) return fmt::format("slot {} is written twice", plan.groups[0].slots[t]);
    step = plan.step;
    swapped_in_[static_cast<size_t>(plan.groups[0].slots[t] / options_.block_tokens)] = false;
  }
  return std::nullopt;
}

/// A row may go on behind where it stood by whole blocks that are published or were swapped in, but
/// not to its end; when it starts again, also where it was before.
PlanChecker::Wrong PlanChecker::take_over(const BatchPlan& plan, size_t index,
                                          const kv::BlockPool& pool) {
  const PlanRow& planned = plan.rows[index];
  Row& row = rows_[static_cast<size_t>(planned.row)];
  const int32_t first = planned.context_len - planned.num_tokens;
  const int32_t block_tokens = options_.block_tokens;
  const bool may_go_on = options_.enable_prefix_caching || options_.num_swap_blocks > 0;
  if (!may_go_on || first <= row.num_computed) return std::nullopt;
  const bool is_back = row.num_computed == 0 && first == row.num_before;
  if (!is_back && (first % block_tokens != 0 || row.num_computed % block_tokens != 0)) {
    return "a hit that is not of whole blocks";
  }
  const GroupPlan& group = plan.groups[0];
  const auto width = static_cast<size_t>(group.table_width);
  for (; row.num_computed < first; row.num_computed += block_tokens) {
    const auto entry = static_cast<size_t>(row.num_computed / block_tokens);
    const int32_t block = group.block_table[index * width + entry];
    if (!pool.is_published(block) && !swapped_in_[static_cast<size_t>(block)]) {
      return fmt::format("row {} takes over a block that is not published", planned.row);
    }
  }
  row.num_computed = first;
  return std::nullopt;
}

PlanChecker::Wrong PlanChecker::check_blocks(const BatchPlan& plan, size_t index,
                                             const kv::BlockPool& pool) const {
  const PlanRow& row = plan.rows[index];
  const GroupPlan& group = plan.groups[0];
  const auto width = static_cast<size_t>(group.table_width);
  const auto table = std::span(group.block_table).subspan(index * width, width);
  const auto num_blocks = static_cast<size_t>(pool.blocks_for(row.context_len));
  if (num_blocks > width) return "a table narrower than its context";
  for (size_t i = 0; i < width; ++i) {
    if (i >= num_blocks && table[i] != kv::kNoBlock) return "an entry behind a table's end";
    if (i < num_blocks && (table[i] < 0 || table[i] >= pool.num_blocks())) return "no such block";
  }
  const int32_t holders = holders_of(plan, rows_[static_cast<size_t>(row.row)].sequence);
  for (int32_t i = 0; i < row.num_tokens; ++i) {
    const int32_t position = row.context_len - row.num_tokens + i;
    const int32_t block = table[static_cast<size_t>(position / options_.block_tokens)];
    const int32_t slot = block * options_.block_tokens + position % options_.block_tokens;
    const size_t t = static_cast<size_t>(row.query_start) + static_cast<size_t>(i);
    if (group.slots[t] != slot) {
      return fmt::format("position {} of row {} is not in its slot {}", position, row.row, slot);
    }
    if (pool.is_published(block)) {
      return fmt::format("row {} writes into block {}, which is published", row.row, block);
    }
    if (pool.ref_count(block) > holders) {
      return fmt::format("row {} writes into block {}, which has {} holders", row.row, block,
                         pool.ref_count(block));
    }
  }
  return std::nullopt;
}

PlanChecker::Wrong PlanChecker::check_uses(const BatchPlan& plan) const {
  const auto& logits_rows = plan.logits_rows;
  if (std::adjacent_find(logits_rows.begin(), logits_rows.end(), std::greater_equal<>()) !=
      logits_rows.end()) {
    return "logits rows are not ascending";
  }
  std::vector<int32_t> num_uses(logits_rows.size());
  std::vector<int32_t> num_samples(rows_.size());
  int32_t last_index = 0;
  for (const LogitsUse& use : plan.uses) {
    if (use.logits_index < last_index) return "uses are out of order";
    last_index = use.logits_index;
    const auto index = static_cast<size_t>(use.logits_index);
    if (index >= logits_rows.size()) return "no such logits row";
    ++num_uses[index];
    const auto token = static_cast<size_t>(logits_rows[index]);
    if (token >= plan.tokens.size()) return "a logits row behind the tokens";
    if (plan.positions[token] + 1 != use.position) return "logits of another position";
    const Row& row = rows_[static_cast<size_t>(use.row)];
    if (!row.held) return fmt::format("row {} is sampled without being held", use.row);
    const auto position = static_cast<size_t>(use.position);
    if (use.kind == LogitsUse::Kind::kSample) {
      const int32_t earlier = num_samples[static_cast<size_t>(use.row)]++;
      if (use.position != row.num_planned() + earlier) return "a sample for an unexpected token";
    } else if (position >= static_cast<size_t>(row.num_prompt) ||
               row.tokens[position] != use.target) {
      return "a prompt log-probability of another token";
    }
  }
  if (std::count(num_uses.begin(), num_uses.end(), 0) > 0) return "a logits row without use";
  return std::nullopt;
}

PlanChecker::Wrong PlanChecker::check_block_ops(const BatchPlan& plan, const kv::BlockPool& pool) {
  for (const BlockOp& op : plan.block_ops) {
    if (auto wrong = check_block_op(op, pool)) return wrong;
    if (op.kind == BlockOp::Kind::kSwapOut) continue;
    swapped_in_[static_cast<size_t>(op.destination)] = op.kind == BlockOp::Kind::kSwapIn;
  }
  return std::nullopt;
}

PlanChecker::Wrong PlanChecker::check_block_op(const BlockOp& op, const kv::BlockPool& pool) const {
  const bool is_out = op.kind == BlockOp::Kind::kSwapOut;
  const bool is_in = op.kind == BlockOp::Kind::kSwapIn;
  if (op.kind != BlockOp::Kind::kCopy && !is_out && !is_in) return "an operation not built yet";
  if (op.group != 0) return "one cache group expected";
  const int32_t num_sources = is_in ? options_.num_swap_blocks : options_.num_blocks;
  const int32_t num_destinations = is_out ? options_.num_swap_blocks : options_.num_blocks;
  if (op.source < 0 || op.source >= num_sources || op.destination < 0 ||
      op.destination >= num_destinations) {
    return "a block that does not exist";
  }
  if (is_out || is_in) return std::nullopt;
  if (op.source == op.destination) return "a block is copied onto itself";
  if (pool.is_published(op.destination)) return "a copy into a published block";
  if (pool.ref_count(op.destination) != 1) return "a copy into a block that is not held by one";
  return std::nullopt;
}

/// A row whose chunk reaches its last token must be sampled, and no other may be.
PlanChecker::Wrong PlanChecker::check_all_due_are_sampled(const BatchPlan& plan) const {
  std::vector<int32_t> num_samples(rows_.size());
  for (const LogitsUse& use : plan.uses) {
    if (use.kind == LogitsUse::Kind::kSample) ++num_samples[static_cast<size_t>(use.row)];
  }
  for (const PlanRow& planned : plan.rows) {
    const Row& row = rows_[static_cast<size_t>(planned.row)];
    const int32_t found = num_samples[static_cast<size_t>(planned.row)];
    const bool complete = planned.context_len == row.num_planned() + planned.num_draft;
    // A request with max_tokens 0 completes its prompt without a sample.
    if (found > 1 + planned.num_draft || (found > 0 && !complete)) {
      return fmt::format("row {} is sampled {} times", planned.row, found);
    }
    if (complete && found < 1 + planned.num_draft && row.num_planned() > row.num_prompt) {
      return fmt::format("row {} is complete and sampled {} times", planned.row, found);
    }
  }
  return std::nullopt;
}

/// Whether the sample for `position` of a row that tries drafts is behind right ones only: the
/// tokens known by now go on with it.
bool PlanChecker::is_wanted(const Row& row, int32_t position) {
  if (position != static_cast<int32_t>(row.tokens.size())) return false;
  const int32_t num_accepted =
      position - (row.num_computed - static_cast<int32_t>(row.drafts.size()));
  return num_accepted == 0 ||
         row.drafts[static_cast<size_t>(num_accepted) - 1] == row.tokens.back();
}

void PlanChecker::sampled(const BatchPlan& plan, std::span<const SampledToken> tokens) {
  size_t next = 0;
  for (const LogitsUse& use : plan.uses) {
    if (use.kind != LogitsUse::Kind::kSample) continue;
    Row& row = rows_[static_cast<size_t>(use.row)];
    const int32_t token = tokens[next++].token;
    --row.num_pending;
    if (row.drafts.empty() || is_wanted(row, use.position)) row.tokens.push_back(token);
  }
  for (const PlanRow& planned : plan.rows) {
    Row& row = rows_[static_cast<size_t>(planned.row)];
    if (planned.num_draft == 0) continue;
    row.drafts.clear();
    row.num_computed = static_cast<int32_t>(row.tokens.size()) - 1;
  }
}

}  // namespace quire::sched::testing
