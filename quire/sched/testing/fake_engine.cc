#include "quire/sched/testing/fake_engine.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace quire::sched::testing {

FakeEngine::FakeEngine(const SchedulerOptions& options)
    : options_(options),
      scheduler_(std::make_unique<Scheduler>(options)),
      model_({.num_blocks = options.num_blocks,
              .block_tokens = options.block_tokens,
              .max_num_seqs = options.max_num_seqs,
              .num_swap_blocks = options.num_swap_blocks}),
      checker_(options),
      poisoned_(static_cast<size_t>(options.num_blocks)),
      poisoned_swapped_(static_cast<size_t>(options.num_swap_blocks)) {}

std::optional<Error> FakeEngine::submit(const Request& request) {
  if (auto error = scheduler_->add(request)) return error;
  const int32_t limit = token_limit(request, scheduler_->options());
  for (int32_t choice = 0; choice < request.n; ++choice) {
    Choice& added = choices_[{request.id, choice}];
    added.alone = output_alone(request, choice, limit);
    added.num_prompt = static_cast<int64_t>(request.prompt.size());
    ++num_live_;
    live_tokens_ += static_cast<int64_t>(request.prompt.size() + added.alone.size());
    num_tokens_ += static_cast<int64_t>(request.prompt.size() + added.alone.size());
  }
  const int64_t num_others = options_.max_plans_in_flight - 1;
  const int64_t waits = num_drafts_ > 0 ? live_tokens_ : num_live_;
  for (int32_t choice = 0; choice < request.n; ++choice) {
    choices_[{request.id, choice}].last_step = num_steps_ + live_tokens_ + num_others * waits;
  }
  if (request.sampling.prompt_logprobs >= 0) scorings_[request.id] = {.request = request};
  after_event();
  return std::nullopt;
}

void FakeEngine::cancel(RequestId request) {
  scheduler_->cancel(request);
  for (auto it = choices_.lower_bound({request, 0});
       it != choices_.end() && it->first.request == request; ++it) {
    if (!it->second.live()) continue;
    it->second.cancelled = true;
    forget_tokens(it->second);
  }
  after_event();
}

void FakeEngine::set_token_budget(int32_t tokens) {
  scheduler_->set_token_budget(tokens);
}

const BatchPlan* FakeEngine::launch() {
  offer_drafts();
  const BatchPlan* plan = scheduler_->plan();
  if (plan != nullptr) {
    if (auto wrong = checker_.check(*plan, scheduler_->pool())) fail(*wrong);
    num_computed_ += static_cast<int64_t>(plan->tokens.size());
    num_steps_ += plan->rows.empty() ? 0 : 1;
    for (const RowStart& start : plan->started) count_start(start.sequence);
    push(*plan);
  }
  after_event();
  return plan;
}

void FakeEngine::push(const BatchPlan& plan) {
  model_.launch(plan);
  for (const RowStart& start : plan.started) row_holders_[start.row] = start.sequence;
  InFlight& pushed = in_flight_.emplace_back();
  pushed.plan = &plan;
  for (const PlanRow& row : plan.rows) {
    const SequenceId sequence = row_holders_[row.row];
    pushed.sequences.push_back(sequence);
    pushed.num_before.push_back(choices_[sequence].output.size());
  }
}

void FakeEngine::offer_drafts() {
  if (num_drafts_ == 0) return;
  for (const auto& [id, choice] : choices_) {
    if (!choice.live() || choice.output.empty()) continue;
    std::vector<int32_t> drafts;
    for (size_t i = choice.output.size(); drafts.size() < static_cast<size_t>(num_drafts_); ++i) {
      const bool is_right = (static_cast<size_t>(id.request) + i * 7 + i / 3) % 4 != 0;
      const int32_t right = i < choice.alone.size() ? choice.alone[i] : 0;
      drafts.push_back(is_right ? right : (right + 1) % kFakeVocab);
    }
    scheduler_->set_drafts(id, drafts);
  }
}

void FakeEngine::count_drafts(const InFlight& landed) {
  for (size_t i = 0; i < landed.plan->rows.size(); ++i) {
    const auto num_draft = int64_t{landed.plan->rows[i].num_draft};
    const Choice& choice = choices_[landed.sequences[i]];
    if (num_draft == 0 || choice.cancelled) continue;
    const auto taken = static_cast<int64_t>(choice.output.size() - landed.num_before[i]);
    num_accepted_drafts_ += taken - 1;
    num_rejected_drafts_ += num_draft - (taken - 1);
    num_wasted_ += num_draft - (taken - 1);
  }
}

/// The model runs only now, so that blocks freed too early after launch() are poisoned by then.
void FakeEngine::land() {
  const InFlight landing = std::move(in_flight_.front());
  in_flight_.pop_front();
  const BatchPlan& plan = *landing.plan;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    if (!choices_[landing.sequences[i]].live()) num_wasted_ += plan.rows[i].num_tokens;
  }
  std::vector<FakeModel::PromptLogprob> reports;
  const std::vector<SampledToken> sampled = model_.finish(reports);
  if (model_.violation()) fail(*model_.violation());
  checker_.sampled(plan, sampled);
  for (const auto& report : reports) take_in(report);
  for (const CommitEvent& event : scheduler_->commit(plan.step, sampled)) take_in(event);
  count_drafts(landing);
  after_event();
}

int64_t FakeEngine::restart() {
  int64_t num_written = 0;
  if (const BatchPlan* plan = scheduler_->plan_flush()) {
    if (auto wrong = checker_.check_flush(*plan, scheduler_->pool())) fail(*wrong);
    num_written = static_cast<int64_t>(plan->block_ops.size());
    push(*plan);
    after_event();
    land();
  }
  past_recomputed_ = num_recomputed();
  auto next = std::make_unique<Scheduler>(options_);
  scheduler_->for_each_cached(
      [&](kv::BlockId block, const kv::BlockHash& hash, const kv::BlockHash& parent,
          std::span<const int32_t> tokens) { next->restore_cached(block, hash, parent, tokens); });
  scheduler_ = std::move(next);
  checker_ = PlanChecker(options_);
  model_.restart();
  poisoned_.assign(poisoned_.size(), true);
  after_event();
  return num_written;
}

const BatchPlan* FakeEngine::step() {
  const BatchPlan* plan = launch();
  if (plan != nullptr) land();
  return plan;
}

void FakeEngine::take_in(const CommitEvent& event) {
  const auto name = fmt::format("{}.{}", event.sequence.request, event.sequence.choice);
  const auto found = choices_.find(event.sequence);
  if (found == choices_.end() || !found->second.live()) {
    return fail(fmt::format("an event for {}, which has ended", name));
  }
  Choice& choice = found->second;
  if (event.token >= 0) {
    const size_t index = choice.output.size();
    choice.output.push_back(event.token);
    if (index >= choice.alone.size() || choice.alone[index] != event.token) {
      return fail(fmt::format("token {} of {} differs from the run alone", index, name));
    }
    if (event.first_token != (index == 0)) fail(fmt::format("the first token of {}", name));
  }
  choice.finish = event.finish;
  check_bound(choice, name);
  const bool complete = choice.output.size() == choice.alone.size();
  if (complete != (event.finish != FinishReason::kNone)) {
    fail(fmt::format("{} has {} of {} tokens at its end", name, choice.output.size(),
                     choice.alone.size()));
  }
  const auto scoring = scorings_.find(event.sequence.request);
  if (scoring != scorings_.end() &&
      scoring->second.next_position !=
          static_cast<int32_t>(scoring->second.request.prompt.size())) {
    fail(fmt::format("{} has tokens before its prompt is scored", name));
  }
}

/// Under first-come a sequence starts at most once more for each preemption it may suffer.
void FakeEngine::count_start(SequenceId sequence) {
  const bool bounded = scheduler_->options().policy == SchedulingPolicy::kFcfs;
  if (++choices_[sequence].num_starts > kMaxPreemptions + 1 && bounded) {
    fail(fmt::format("{}.{} was preempted too often", sequence.request, sequence.choice));
  }
}

/// Under first-come a choice ends within as many steps as there were tokens to compute for it and
/// all before it when it came, and for each of them as many more as other plans may be in flight;
/// with drafts for each token.
void FakeEngine::check_bound(const Choice& choice, const std::string& name) {
  if (choice.live()) return;
  forget_tokens(choice);
  if (scheduler_->options().policy == SchedulingPolicy::kFcfs && num_steps_ > choice.last_step) {
    fail(fmt::format("{} ended in step {}, {} at the latest", name, num_steps_, choice.last_step));
  }
}

void FakeEngine::forget_tokens(const Choice& choice) {
  --num_live_;
  live_tokens_ -= choice.num_prompt + static_cast<int64_t>(choice.alone.size());
}

void FakeEngine::take_in(const FakeModel::PromptLogprob& report) {
  const auto found = scorings_.find(report.sequence.request);
  if (found == scorings_.end()) return fail("a prompt log-probability that nobody asked for");
  Scoring& scoring = found->second;
  const auto& prompt = scoring.request.prompt;
  if (report.position != scoring.next_position++) return fail("prompt positions out of order");
  FakeLogits alone;
  for (int32_t i = 0; i < report.position; ++i) alone.feed(prompt[static_cast<size_t>(i)]);
  if (report.target != prompt[static_cast<size_t>(report.position)] ||
      report.logits != alone.logits) {
    fail(fmt::format("prompt position {} differs from the run alone", report.position));
  }
}

void FakeEngine::after_event() {
  if (auto wrong = scheduler_->check_invariants()) fail(*wrong);
  check_plans_in_flight();
  poison_free_blocks();
  if (!scheduler_->idle()) return;
  if (scheduler_->pool().num_used() > 0) fail("blocks are held while idle");
  if (scheduler_->swap_usage() > 0) fail("swap blocks are held while idle");
}

/// Blocks that a plan in flight reads are held until it is committed.
void FakeEngine::check_plans_in_flight() {
  for (const InFlight& launched : in_flight_) {
    const BatchPlan* plan = launched.plan;
    for (const int32_t block : plan->groups[0].block_table) {
      if (block == kv::kNoBlock || scheduler_->pool().ref_count(block) > 0) continue;
      fail(fmt::format("block {} is free while step {} uses it", block, plan->step));
    }
  }
}

/// A cached block keeps its content until it is taken for something else; any other free one loses
/// it.
void FakeEngine::poison_free_blocks() {
  const auto visit = [](const kv::BlockPool& pool, std::vector<bool>& poisoned, auto poison) {
    for (kv::BlockId block = 0; block < pool.num_blocks(); ++block) {
      const bool is_free = pool.ref_count(block) == 0 && !pool.is_published(block);
      if (is_free && !poisoned[static_cast<size_t>(block)]) poison(block);
      poisoned[static_cast<size_t>(block)] = is_free;
    }
  };
  visit(scheduler_->pool(), poisoned_, [&](kv::BlockId block) { model_.poison(block); });
  if (scheduler_->swap_pool() == nullptr) return;
  visit(*scheduler_->swap_pool(), poisoned_swapped_,
        [&](kv::BlockId block) { model_.poison_swapped(block); });
}

void FakeEngine::fail(std::string what) {
  if (!violation_) violation_ = std::move(what);
}

}  // namespace quire::sched::testing
