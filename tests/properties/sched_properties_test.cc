// Random traces of the scheduler: whatever arrives, is cancelled or preempted, nothing is lost and
// every output is the one computed alone. QUIRE_SEED=n runs the trace of one seed, as failures
// name.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "quire/sched/testing/fake_engine.h"

namespace quire::sched::testing {
namespace {

constexpr uint64_t kNumSeeds = 500;

/// A seeded source of small choices.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  /// Uniform in [low, high].
  int32_t between(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  /// Small numbers as likely as large ones: uniform below a uniformly chosen doubling of `low`.
  int32_t log_between(int32_t low, int32_t high) {
    const auto doublings = static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(high / low)));
    return between(low, std::min(low << between(0, doublings), high));
  }
  bool chance(int32_t percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine_;
};

SchedulerOptions random_options(Dice& dice) {
  SchedulerOptions options;
  options.block_tokens = dice.chance(50) ? 16 : 32;
  options.num_blocks = dice.chance(50) ? dice.between(7, 40) : dice.between(40, 512);
  options.max_num_batched_tokens =
      dice.chance(30) ? dice.log_between(1, 16) : dice.log_between(16, 4096);
  options.max_num_seqs = dice.between(1, 64);
  options.max_logits_rows = dice.chance(30) ? dice.log_between(1, 64) : 64;
  options.max_model_len = dice.between(50, 400);
  options.enable_chunked_prefill = dice.chance(80);
  options.long_prefill_token_threshold = dice.chance(30) ? dice.between(1, 64) : 0;
  options.enable_prefix_caching = dice.chance(50);
  if (dice.chance(20)) options.hash_bits = dice.between(1, 6);
  if (!options.enable_chunked_prefill) options.max_num_batched_tokens += options.max_model_len;
  return options;
}

/// Lengths are such that a few requests fill the pool, at once or as they grow.
Request random_request(Dice& dice, const SchedulerOptions& options, RequestId id) {
  Request request;
  request.id = id;
  const auto pool_tokens = static_cast<int32_t>(options.pool_tokens());
  const int32_t longest = dice.chance(70) ? 24 : std::min(pool_tokens / 2, 250);
  request.prompt.resize(static_cast<size_t>(dice.log_between(std::min(longest, 8), longest)));
  for (int32_t& token : request.prompt) token = dice.between(0, kFakeVocab - 1);
  // Half of the prompts begin as another one may.
  const int32_t shared =
      dice.chance(50) ? 0 : dice.between(0, static_cast<int32_t>(request.prompt.size()));
  const int32_t prefix = dice.between(0, 2);
  for (int32_t i = 0; i < shared; ++i)
    request.prompt[static_cast<size_t>(i)] = (prefix + i) % kFakeVocab;
  request.n = dice.chance(70) ? 1 : dice.between(2, 4);
  request.sampling.seed = static_cast<uint64_t>(dice.between(0, 1000));
  request.sampling.max_tokens = dice.chance(5) ? dice.between(-1, 0) : dice.log_between(8, 200);
  if (dice.chance(40)) request.sampling.stop_token_ids = {dice.between(0, kFakeVocab - 1), 5};
  if (dice.chance(15)) request.sampling.prompt_logprobs = dice.between(0, 5);
  return request;
}

struct Totals {
  int64_t events = 0;
  int64_t tokens = 0;
  int64_t preemptions = 0;
  int64_t shared_starts = 0;
  int64_t copies = 0;
  int64_t refused = 0;
  int64_t cancelled_in_flight = 0;
  int64_t hits = 0;
};

/// One seed's life: arrivals, steps and cancels in random order, then steps until all have ended.
class Trace {
 public:
  Trace(uint64_t seed, Totals& totals)
      : dice_(seed), options_(random_options(dice_)), engine_(options_), totals_(totals) {}

  std::string run() {
    const int32_t num_events = dice_.between(20, 200);
    const int32_t arrivals = dice_.between(5, 60);
    const int32_t cancels = dice_.between(0, 8);
    for (int32_t i = 0; i < num_events && !engine_.violation(); ++i) {
      const int32_t kind = dice_.between(1, 100);
      if (kind <= arrivals) {
        submit();
      } else if (kind <= arrivals + cancels && next_id_ > 0) {
        cancel();
      } else {
        half_step();
      }
    }
    drain();
    totals_.preemptions += engine_.scheduler().num_preemptions();
    totals_.hits += engine_.scheduler().cache_counts().hits;
    totals_.tokens += engine_.num_computed();
    return engine_.violation().value_or(wrong_at_end());
  }

 private:
  void submit() {
    ++totals_.events;
    if (engine_.submit(random_request(dice_, options_, next_id_++))) ++totals_.refused;
  }

  void cancel() {
    ++totals_.events;
    if (engine_.scheduler().in_flight()) ++totals_.cancelled_in_flight;
    engine_.cancel(dice_.between(0, static_cast<int32_t>(next_id_) - 1));
  }

  void half_step() {
    ++totals_.events;
    if (engine_.scheduler().in_flight()) return engine_.land();
    const BatchPlan* plan = engine_.launch();
    if (plan == nullptr) return;
    totals_.copies += static_cast<int64_t>(plan->block_ops.size());
    for (const RowStart& start : plan->started) {
      totals_.shared_starts += start.sequence.choice > 0 && start.output.empty() ? 1 : 0;
    }
  }

  /// Every step runs the earliest sequence, so there are no more steps than tokens.
  void drain() {
    for (int64_t i = 0; i <= 2 * engine_.num_tokens() + 1; ++i) {
      if (engine_.scheduler().idle() || engine_.violation()) return;
      half_step();
    }
  }

  std::string wrong_at_end() const {
    const Scheduler& scheduler = engine_.scheduler();
    if (!scheduler.idle()) return "not all ended within as many steps as there are tokens";
    if (scheduler.kv_usage() > 0 || scheduler.num_running() != 0 || scheduler.num_waiting() != 0) {
      return "something is held at the end";
    }
    for (const auto& [id, choice] : engine_.choices()) {
      if (choice.live()) return "a choice has not ended";
    }
    if (scheduler.num_preemptions() == 0 && engine_.num_computed() > engine_.num_tokens()) {
      return "more tokens were computed than there are, without a preemption";
    }
    return "";
  }

  Dice dice_;
  SchedulerOptions options_;
  FakeEngine engine_;
  Totals& totals_;
  RequestId next_id_ = 0;
};

TEST(SchedulerProperties, RandomTraces) {
  Totals totals;
  uint64_t first = 1;
  uint64_t last = kNumSeeds;
  if (const char* seed = std::getenv("QUIRE_SEED")) first = last = std::stoull(seed);
  for (uint64_t seed = first; seed <= last; ++seed) {
    const std::string wrong = Trace(seed, totals).run();
    ASSERT_TRUE(wrong.empty()) << "QUIRE_SEED=" << seed << ": " << wrong;
  }
  fmt::print(
      "events={} seeds={} tokens={} preemptions={} shared_starts={} copies={} refused={} "
      "cancelled_in_flight={} hits={}\n",
      totals.events, last - first + 1, totals.tokens, totals.preemptions, totals.shared_starts,
      totals.copies, totals.refused, totals.cancelled_in_flight, totals.hits);
  if (first != last) {  // the traces reach what they are for
    EXPECT_GT(totals.events, 200'000);
    EXPECT_GT(totals.preemptions, 500);
    EXPECT_GT(totals.shared_starts, 500);
    EXPECT_GT(totals.copies, 500);
    EXPECT_GT(totals.refused, 50);
    EXPECT_GT(totals.cancelled_in_flight, 100);
    EXPECT_GT(totals.hits, 1000);
  }
}

}  // namespace
}  // namespace quire::sched::testing
