// FakeEngine: the step loop around a real Scheduler and a FakeModel, which checks after every event
// that nothing is lost, shared wrongly or computed otherwise than alone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quire/sched/scheduler.h"
#include "quire/sched/testing/fake_model.h"
#include "quire/sched/testing/plan_checker.h"

namespace quire::sched::testing {

class FakeEngine {
 public:
  /// What has become of one choice.
  struct Choice {
    std::vector<int32_t> alone;  // its output computed alone
    std::vector<int32_t> output;
    FinishReason finish = FinishReason::kNone;
    bool cancelled = false;
    int32_t num_starts = 0;  // times it got a row
    int64_t num_prompt = 0;
    int64_t last_step = 0;  // by which it must have ended
    bool live() const { return finish == FinishReason::kNone && !cancelled; }
  };

  explicit FakeEngine(const SchedulerOptions& options);

  std::optional<Error> submit(const Request& request);
  void cancel(RequestId request);
  /// Plans a step, which is then in flight. Null: nothing to run, or not before a step lands.
  const BatchPlan* launch();
  /// Runs and commits the earliest step in flight.
  void land();
  /// launch() and, if there was something to run, land().
  const BatchPlan* step();
  /// When idle: writes the cache to the swap space, and goes on with a new scheduler that knows
  /// what is there, and nothing else. Returns the blocks written.
  int64_t restart();

  void set_token_budget(int32_t tokens);
  /// From now on `count` drafts are offered for each token, about three in four of them right.
  void set_num_drafts(int32_t count) { num_drafts_ = count; }

  const Scheduler& scheduler() const { return *scheduler_; }
  const std::map<SequenceId, Choice>& choices() const { return choices_; }
  /// Tokens, prompt and output, of all choices submitted: within as many steps all must end.
  int64_t num_tokens() const { return num_tokens_; }
  /// Tokens run so far, repeated computations included.
  int64_t num_computed() const { return num_computed_; }
  /// Those of them that were run for nothing: wrong drafts, and tokens of a sequence that had
  /// ended, but that was not known yet.
  int64_t num_wasted() const { return num_wasted_; }
  int64_t num_accepted_drafts() const { return num_accepted_drafts_; }
  int64_t num_rejected_drafts() const { return num_rejected_drafts_; }
  /// Sequences that lost what they had computed, since the first scheduler began.
  int64_t num_recomputed() const {
    return past_recomputed_ + scheduler_->swap_counts().preemptions_recomputed;
  }
  /// The first thing that went wrong, or nothing.
  const std::optional<std::string>& violation() const { return violation_; }

 private:
  struct InFlight {
    const BatchPlan* plan = nullptr;
    std::vector<SequenceId> sequences;  // [rows]
    std::vector<size_t> num_before;     // [rows] tokens of output when it was launched
  };
  struct Scoring {
    Request request;
    int32_t next_position = 1;
  };

  void take_in(const CommitEvent& event);
  void take_in(const FakeModel::PromptLogprob& report);
  void push(const BatchPlan& plan);
  void offer_drafts();
  void count_drafts(const InFlight& landed);
  void count_start(SequenceId sequence);
  void check_bound(const Choice& choice, const std::string& name);
  void check_plans_in_flight();
  void forget_tokens(const Choice& choice);
  void poison_free_blocks();
  void after_event();
  void fail(std::string what);

  SchedulerOptions options_;
  std::unique_ptr<Scheduler> scheduler_;
  FakeModel model_;
  PlanChecker checker_;
  std::deque<InFlight> in_flight_;
  std::map<RowId, SequenceId> row_holders_;
  std::map<SequenceId, Choice> choices_;
  std::map<RequestId, Scoring> scorings_;  // requests for prompt log-probabilities
  std::vector<bool> poisoned_;             // by block
  std::vector<bool> poisoned_swapped_;     // by swap block
  int64_t num_tokens_ = 0;
  int64_t num_computed_ = 0;
  int64_t num_wasted_ = 0;
  int64_t num_accepted_drafts_ = 0;
  int64_t num_rejected_drafts_ = 0;
  int32_t num_drafts_ = 0;
  int64_t num_steps_ = 0;    // that ran something
  int64_t num_live_ = 0;     // choices that have not ended
  int64_t live_tokens_ = 0;  // prompt and output tokens of the choices that have not ended
  int64_t past_recomputed_ = 0;
  std::optional<std::string> violation_;
};

}  // namespace quire::sched::testing
