#include "quire/sched/sim/simulator.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "quire/sched/testing/fake_engine.h"

namespace quire::sched::sim {
namespace {

class Player {
 public:
  Player(const Scenario& scenario, Totals& totals, std::string* trace)
      : scenario_(scenario), totals_(totals), trace_(trace), engine_(scenario.options) {
    engine_.set_num_drafts(scenario.num_drafts);
    say(text_of(scenario));
  }

  std::optional<std::string> play() {
    for (const Event& event : scenario_.events) {
      if (engine_.violation()) break;
      play(event);
    }
    drain();
    count();
    if (engine_.violation()) return engine_.violation();
    return wrong_at_end();
  }

 private:
  void say(const std::string& statement) {
    if (trace_ != nullptr) *trace_ += statement + "\n";
  }

  void play(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kSubmit: {
        ++totals_.events;
        const bool refused = engine_.submit(testing::request_of(event.arrival)).has_value();
        totals_.refused += refused ? 1 : 0;
        if (!refused) submitted_.insert(event.arrival.id);
        say(testing::text_of(event.arrival) + (refused ? " refused" : ""));
        break;
      }
      case Event::Kind::kCancel:
        if (submitted_.count(event.value) == 0) break;
        ++totals_.events;
        if (engine_.scheduler().in_flight()) ++totals_.cancelled_in_flight;
        say(fmt::format("cancel r{}", event.value));
        engine_.cancel(event.value);
        break;
      case Event::Kind::kBudget:
        ++totals_.events;
        say(fmt::format("budget {}", event.value));
        engine_.set_token_budget(event.value);
        break;
      case Event::Kind::kRestart:
        restart();
        break;
      case Event::Kind::kHalfStep:
        half_step(event.value == 1);
        break;
    }
  }

  /// Every step runs a token of the first, or waits for one that does: there are no more steps than
  /// tokens, times the plans in flight.
  void drain() {
    const int64_t num_plans = scenario_.options.max_plans_in_flight;
    for (int64_t i = 0; i <= 2 * num_plans * engine_.num_tokens() + 2 * num_plans; ++i) {
      if (engine_.scheduler().idle() || engine_.violation()) break;
      half_step(i % 3 == 0);
    }
  }

  void restart() {
    drain();
    if (!engine_.scheduler().idle() || engine_.violation()) return;
    ++totals_.events;
    count();
    say("restart");
    totals_.flushed += engine_.restart();
  }

  void half_step(bool rather_land) {
    ++totals_.events;
    const int32_t num_in_flight = engine_.scheduler().num_in_flight();
    if (engine_.scheduler().idle()) return;
    const bool is_full = num_in_flight == scenario_.options.max_plans_in_flight;
    if (is_full || (num_in_flight > 0 && rather_land)) return land();
    say("launch");
    const BatchPlan* plan = engine_.launch();
    if (plan == nullptr && num_in_flight > 0) return land();
    if (plan != nullptr) count(*plan);
  }

  void land() {
    say("land");
    engine_.land();
  }

  void count(const BatchPlan& plan) {
    totals_.placeholders += std::count(plan.tokens.begin(), plan.tokens.end(), kPlaceholderToken);
    for (const BlockOp& op : plan.block_ops) {
      totals_.copies += op.kind == BlockOp::Kind::kCopy ? 1 : 0;
    }
    for (const RowStart& start : plan.started) {
      if (start.sequence.choice > 0 && start.output.empty()) {
        ++totals_.shared_starts;
        continue;
      }
      const auto runs = [&](const PlanRow& row) { return row.row == start.row; };
      if (std::none_of(plan.rows.begin(), plan.rows.end(), runs)) ++totals_.waits;
    }
  }

  void count() {
    const Scheduler& scheduler = engine_.scheduler();
    totals_.tokens += engine_.num_computed() - num_counted_;
    num_counted_ = engine_.num_computed();
    totals_.accepted_drafts += engine_.num_accepted_drafts() - num_counted_accepted_;
    num_counted_accepted_ = engine_.num_accepted_drafts();
    totals_.rejected_drafts += engine_.num_rejected_drafts() - num_counted_rejected_;
    num_counted_rejected_ = engine_.num_rejected_drafts();
    const SwapCounts swapped = scheduler.swap_counts();
    totals_.swapped_out += swapped.blocks_out;
    totals_.swapped_in += swapped.blocks_in;
    totals_.preemptions_swapped += swapped.preemptions_swapped;
    totals_.tier_hits += swapped.tier_hits;
    totals_.tier_evictions += swapped.tier_evictions;
    totals_.hits += scheduler.cache_counts().hits;
    totals_.evictions += scheduler.pool().num_evictions();
    totals_.preemptions += scheduler.num_preemptions();
  }

  std::optional<std::string> wrong_at_end() const {
    const Scheduler& scheduler = engine_.scheduler();
    if (!scheduler.idle()) return "not all ended within as many steps as there are tokens";
    if (scheduler.pool().num_used() != 0 || scheduler.num_running() != 0) {
      return "something is held at the end";
    }
    for (const auto& [id, choice] : engine_.choices()) {
      if (choice.live()) return "a choice has not ended";
    }
    if (scheduler.cache_counts().hits > scheduler.cache_counts().queries) {
      return "more was found in the cache than asked for";
    }
    if (engine_.num_recomputed() == 0 &&
        engine_.num_computed() > engine_.num_tokens() + engine_.num_wasted()) {
      return "more tokens were computed than there are, and nobody lost any";
    }
    return std::nullopt;
  }

  const Scenario& scenario_;
  Totals& totals_;
  std::string* trace_;
  testing::FakeEngine engine_;
  std::set<int32_t> submitted_;
  // What is in totals_ already: computed tokens, drafts.
  int64_t num_counted_ = 0;
  int64_t num_counted_accepted_ = 0;
  int64_t num_counted_rejected_ = 0;
};

}  // namespace

std::optional<std::string> play(const Scenario& scenario, Totals& totals, std::string* trace) {
  return Player(scenario, totals, trace).play();
}

Scenario shrink(Scenario scenario) {
  Totals ignored;
  for (size_t length = scenario.events.size(); length > 0; length /= 2) {
    for (size_t first = 0; first < scenario.events.size();) {
      const size_t last = std::min(first + length, scenario.events.size());
      Scenario shorter{.options = scenario.options, .num_drafts = scenario.num_drafts};
      shorter.events.assign(scenario.events.begin(),
                            scenario.events.begin() + static_cast<ptrdiff_t>(first));
      shorter.events.insert(shorter.events.end(),
                            scenario.events.begin() + static_cast<ptrdiff_t>(last),
                            scenario.events.end());
      if (play(shorter, ignored)) {
        scenario = std::move(shorter);
      } else {
        first = last;
      }
    }
  }
  return scenario;
}

std::optional<std::string> play_seed(uint64_t seed, Totals& totals) {
  const Scenario scenario = random_scenario(seed);
  const auto wrong = play(scenario, totals);
  if (!wrong) return std::nullopt;
  Totals ignored;
  std::string trace;
  const auto shrunk = play(shrink(scenario), ignored, &trace);
  return fmt::format("seed {}: {}\nshrunk to: {}\n{}", seed, *wrong, shrunk.value_or(*wrong),
                     trace);
}

}  // namespace quire::sched::sim
