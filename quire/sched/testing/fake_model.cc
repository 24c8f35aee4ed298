#include "quire/sched/testing/fake_model.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace quire::sched::testing {
namespace {

/// The finalizer of splitmix64 over a running value (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t state, uint64_t value) {
  uint64_t z = state + value + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool is_stop(const SamplingSpec& sampling, int32_t token) {
  const auto& stops = sampling.stop_token_ids;
  return std::find(stops.begin(), stops.end(), token) != stops.end();
}

}  // namespace

void FakeLogits::feed(int32_t token) {
  hidden = mix(hidden, static_cast<uint64_t>(token));
  logits = mix(logits, hidden);
}

int32_t fake_sample(uint64_t logits, const SamplingSpec& sampling, int32_t choice,
                    int32_t position) {
  const uint64_t key =
      mix(mix(sampling.seed, static_cast<uint64_t>(choice)), static_cast<uint64_t>(position));
  return static_cast<int32_t>(mix(logits, key) % kFakeVocab);
}

std::vector<int32_t> output_alone(const Request& request, int32_t choice, int32_t token_limit) {
  FakeLogits state;
  for (const int32_t token : request.prompt) state.feed(token);
  std::vector<int32_t> output;
  for (auto position = static_cast<int32_t>(request.prompt.size()); position < token_limit;
       ++position) {
    output.push_back(fake_sample(state.logits, request.sampling, choice, position));
    if (is_stop(request.sampling, output.back())) break;
    state.feed(output.back());
  }
  return output;
}

FakeModel::FakeModel(const Options& options)
    : options_(options),
      slots_(static_cast<size_t>(options.num_blocks) * static_cast<size_t>(options.block_tokens)),
      swap_slots_(static_cast<size_t>(options.num_swap_blocks) *
                  static_cast<size_t>(options.block_tokens)),
      rows_(static_cast<size_t>(options.max_num_seqs)) {}

void FakeModel::launch(const BatchPlan& plan) {
  for (const RowId row : plan.finished) rows_[static_cast<size_t>(row)] = {};
  for (const RowStart& start : plan.started) {
    Row& row = rows_[static_cast<size_t>(start.row)];
    row = {start.sequence, start.sampling, start.prompt};
    row.tokens.insert(row.tokens.end(), start.output.begin(), start.output.end());
  }
  launched_.push_back({.plan = &plan, .poisons = {}});
}

void FakeModel::restart() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  std::fill(rows_.begin(), rows_.end(), Row{});
}

void FakeModel::poison(const Poison& poison) {
  if (launched_.empty()) return clear(poison);
  launched_.back().poisons.push_back(poison);
}

void FakeModel::clear(const Poison& poison) {
  std::fill_n(first_slot(poison.swapped, poison.block), options_.block_tokens, Slot{});
}

std::vector<FakeModel::Slot>::iterator FakeModel::first_slot(bool swapped, kv::BlockId block) {
  return (swapped ? swap_slots_ : slots_).begin() + int64_t{block} * options_.block_tokens;
}

void FakeModel::move_blocks(const BatchPlan& plan) {
  for (const BlockOp& op : plan.block_ops) {
    std::copy_n(first_slot(op.kind == BlockOp::Kind::kSwapIn, op.source), options_.block_tokens,
                first_slot(op.kind == BlockOp::Kind::kSwapOut, op.destination));
  }
}

void FakeModel::store_tokens(const BatchPlan& plan) {
  for (const PlanRow& row : plan.rows) {
    const auto begin = static_cast<size_t>(row.query_start);
    for (size_t t = begin; t < begin + static_cast<size_t>(row.num_tokens); ++t) {
      const int32_t slot = plan.groups[0].slots[t];
      // A block is written from its first slot on: what it held before is gone.
      if (slot % options_.block_tokens == 0) clear({slot / options_.block_tokens, false});
      slots_[static_cast<size_t>(slot)] = {
          .position = plan.positions[t], .token = input(plan.tokens[t], row.row), .hidden = 0};
    }
  }
}

/// The token itself or, for a placeholder, the one that the row sampled last.
int32_t FakeModel::input(int32_t token, RowId row) const {
  if (token != kPlaceholderToken) return token;
  return rows_[static_cast<size_t>(row)].tokens.back();
}

/// What the row's token at `position` must be: known to the runner or, if not, an input of the
/// step.
int32_t FakeModel::token_at(const BatchPlan& plan, const PlanRow& row, int32_t position) const {
  const auto& known = rows_[static_cast<size_t>(row.row)].tokens;
  if (position < static_cast<int32_t>(known.size())) return known[static_cast<size_t>(position)];
  const int32_t t = row.query_start + position - (row.context_len - row.num_tokens);
  return plan.tokens[static_cast<size_t>(t)];
}

const FakeModel::Slot& FakeModel::read(std::span<const int32_t> table, int32_t position,
                                       int32_t token) {
  const int32_t block = table[static_cast<size_t>(position / options_.block_tokens)];
  const int32_t slot = block * options_.block_tokens + position % options_.block_tokens;
  const Slot& found = slots_[static_cast<size_t>(slot)];
  if ((found.position != position || found.token != token) && !violation_) {
    violation_ = fmt::format("slot {} was read for position {}, token {} and holds {}, {}", slot,
                             position, token, found.position, found.token);
  }
  return found;
}

/// Layer 1 of the row's tokens from the tokens read back, then layer 2 from the hidden values read
/// back: those of earlier steps are not computed again, as in a model.
void FakeModel::run_row(const BatchPlan& plan, size_t row_index) {
  const PlanRow& row = plan.rows[row_index];
  const GroupPlan& group = plan.groups[0];
  const auto width = static_cast<size_t>(group.table_width);
  const auto table = std::span(group.block_table).subspan(row_index * width, width);
  const int32_t begin = row.context_len - row.num_tokens;
  FakeLogits layer1;
  for (int32_t position = 0; position < row.context_len; ++position) {
    layer1.feed(read(table, position, token_at(plan, row, position)).token);
    if (position < begin) continue;
    const auto t = static_cast<size_t>(row.query_start + position - begin);
    slots_[static_cast<size_t>(group.slots[t])].hidden = layer1.hidden;
  }
  uint64_t logits = 0;
  for (int32_t position = 0; position < row.context_len; ++position) {
    logits = mix(logits, read(table, position, token_at(plan, row, position)).hidden);
    if (position < begin) continue;
    token_logits_[static_cast<size_t>(row.query_start + position - begin)] = logits;
  }
}

std::vector<SampledToken> FakeModel::finish(std::vector<PromptLogprob>& prompt_logprobs) {
  const Launched launched = std::move(launched_.front());
  launched_.pop_front();
  const BatchPlan& plan = *launched.plan;
  move_blocks(plan);
  for (const Poison& poison : launched.poisons) clear(poison);
  store_tokens(plan);
  token_logits_.assign(plan.tokens.size(), 0);
  for (size_t row = 0; row < plan.rows.size(); ++row) run_row(plan, row);
  return use_logits(plan, prompt_logprobs);
}

std::vector<SampledToken> FakeModel::use_logits(const BatchPlan& plan,
                                                std::vector<PromptLogprob>& prompt_logprobs) {
  std::vector<SampledToken> sampled;
  for (const LogitsUse& use : plan.uses) {
    Row& row = rows_[static_cast<size_t>(use.row)];
    const auto token_index =
        static_cast<size_t>(plan.logits_rows[static_cast<size_t>(use.logits_index)]);
    const uint64_t logits = token_logits_[token_index];
    if (use.kind == LogitsUse::Kind::kPromptLogprob) {
      prompt_logprobs.push_back({row.sequence, use.position, use.target, logits});
    } else {
      const int32_t token = fake_sample(logits, row.sampling, row.sequence.choice, use.position);
      sampled.push_back({.token = token, .stop = is_stop(row.sampling, token)});
    }
  }
  keep_accepted(plan, sampled);
  return sampled;
}

/// A row's tokens go on with the first sample, and the next ones as long as the drafts were right.
void FakeModel::keep_accepted(const BatchPlan& plan, const std::vector<SampledToken>& sampled) {
  size_t next = 0;
  const LogitsUse* before = nullptr;  // the use of the last sample kept
  for (const LogitsUse& use : plan.uses) {
    if (use.kind != LogitsUse::Kind::kSample) continue;
    const int32_t token = sampled[next++].token;
    auto& tokens = rows_[static_cast<size_t>(use.row)].tokens;
    const bool is_first = before == nullptr || before->row != use.row;
    const auto input = static_cast<size_t>(plan.logits_rows[static_cast<size_t>(use.logits_index)]);
    const bool is_right =
        use.position == static_cast<int32_t>(tokens.size()) && plan.tokens[input] == tokens.back();
    if (!is_first && !is_right) continue;
    tokens.push_back(token);
    before = &use;
  }
}

}  // namespace quire::sched::testing
