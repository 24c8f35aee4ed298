#include "quire/sched/sim/scenario.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <random>

#include <fmt/format.h>

#include "quire/sched/testing/fake_model.h"

namespace quire::sched::sim {
namespace {

/// A seeded source of small choices.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  /// Uniform in [low, high].
  int32_t between(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  /// Small numbers as likely as large ones.
  int32_t log_between(int32_t low, int32_t high) {
    const auto doublings = static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(high / low)));
    return between(low, std::min(low << between(0, doublings), high));
  }
  bool chance(int32_t percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine_;
};

void random_swap(Dice& dice, SchedulerOptions& options) {
  constexpr PreemptionMode kModes[] = {PreemptionMode::kAuto, PreemptionMode::kSwap,
                                       PreemptionMode::kRecompute};
  options.num_swap_blocks = dice.chance(50) ? dice.between(1, 30) : dice.between(1, 300);
  options.preemption_mode = kModes[dice.between(0, 2)];
  options.recompute_token_ns = dice.between(0, 100);
  options.swap_block_ns = dice.between(0, 100);
}

SchedulerOptions random_options(Dice& dice) {
  constexpr int32_t kBlockTokens[] = {1, 2, 3, 4, 8, 16, 16, 16, 32, 64, 128};
  SchedulerOptions options;
  options.block_tokens =
      kBlockTokens[dice.between(0, static_cast<int32_t>(std::size(kBlockTokens)) - 1)];
  options.num_blocks = dice.chance(60) ? dice.between(7, 40) : dice.between(40, 512);
  options.max_num_batched_tokens =
      dice.chance(30) ? dice.log_between(1, 16) : dice.log_between(16, 4096);
  options.max_num_seqs = dice.between(1, 48);
  options.max_logits_rows = dice.chance(30) ? dice.log_between(1, 64) : 64;
  options.max_model_len = dice.between(40, 300);
  options.enable_chunked_prefill = dice.chance(85);
  options.long_prefill_token_threshold = dice.chance(30) ? dice.between(1, 64) : 0;
  options.enable_prefix_caching = dice.chance(70);
  options.hash_bits = dice.chance(15) ? dice.between(0, 6) : 64;
  if (dice.chance(60)) random_swap(dice, options);
  options.max_plans_in_flight = dice.chance(50) ? 1 : dice.between(2, 4);
  options.policy = dice.chance(25) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
  if (!options.enable_chunked_prefill) options.max_num_batched_tokens += options.max_model_len;
  return options;
}

/// Lengths are such that a few requests fill the pool, at once or as they grow.
testing::Arrival random_arrival(Dice& dice, const SchedulerOptions& options, int32_t id) {
  const auto pool_tokens = static_cast<int32_t>(options.pool_tokens());
  const int32_t longest = std::clamp(dice.chance(60) ? 24 : pool_tokens / 2, 2, 200);
  testing::Arrival arrival{.id = id, .length = dice.log_between(2, longest)};
  arrival.prefix = dice.between(0, 3);
  arrival.prefix_length = dice.chance(30) ? 0 : dice.between(0, arrival.length);
  if (dice.chance(20)) arrival.prefix_length = arrival.length;
  arrival.max_tokens = dice.chance(5) ? dice.between(-1, 0) : dice.log_between(4, 100);
  arrival.n = dice.chance(75) ? 1 : dice.between(2, 4);
  if (options.policy == SchedulingPolicy::kPriority) arrival.priority = dice.between(-2, 2);
  arrival.seed = dice.between(0, 3);
  arrival.stop = dice.chance(40) ? dice.between(0, testing::kFakeVocab - 1) : -1;
  arrival.logprobs = dice.chance(10);
  if (dice.chance(10)) arrival.salt = "s";
  return arrival;
}

}  // namespace

Scenario random_scenario(uint64_t seed) {
  Dice dice(seed);
  Scenario scenario{.options = random_options(dice)};
  if (dice.chance(35)) scenario.num_drafts = dice.between(1, kMaxDraftTokens);
  const int32_t num_events = dice.between(50, 400);
  const int32_t arrivals = dice.between(5, 50);
  const int32_t cancels = dice.between(0, 8);
  const int32_t budgets = dice.between(0, 4);
  const int32_t restarts = dice.chance(20) ? 1 : 0;
  int32_t num_requests = 0;
  for (int32_t i = 0; i < num_events; ++i) {
    const int32_t kind = dice.between(1, 100);
    Event event{.value = dice.between(0, 1)};
    if (kind <= arrivals) {
      event = {.kind = Event::Kind::kSubmit,
               .arrival = random_arrival(dice, scenario.options, num_requests++)};
    } else if (kind <= arrivals + cancels && num_requests > 0) {
      const int32_t oldest = std::max(0, num_requests - 20);
      event = {.kind = Event::Kind::kCancel, .value = dice.between(oldest, num_requests - 1)};
    } else if (kind <= arrivals + cancels + budgets) {
      event = {.kind = Event::Kind::kBudget, .value = dice.log_between(1, 4096)};
    } else if (kind <= arrivals + cancels + budgets + restarts) {
      event = {.kind = Event::Kind::kRestart};
    }
    scenario.events.push_back(std::move(event));
  }
  return scenario;
}

std::string text_of(const Scenario& scenario) {
  const SchedulerOptions& options = scenario.options;
  return fmt::format(
      "options blocks {} block_tokens {} budget {} seqs {} context {} logits {} threshold {} "
      "chunked {} cache {} hash_bits {} priority {} swap {} preemption {} recompute_ns {} "
      "swap_ns {} plans {} drafts {}",
      options.num_blocks, options.block_tokens, options.max_num_batched_tokens,
      options.max_num_seqs, options.max_model_len, options.max_logits_rows,
      options.long_prefill_token_threshold, options.enable_chunked_prefill ? 1 : 0,
      options.enable_prefix_caching ? 1 : 0, options.hash_bits,
      options.policy == SchedulingPolicy::kPriority ? 1 : 0, options.num_swap_blocks,
      static_cast<int32_t>(options.preemption_mode), options.recompute_token_ns,
      options.swap_block_ns, options.max_plans_in_flight, scenario.num_drafts);
}

}  // namespace quire::sched::sim
