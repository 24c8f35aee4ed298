// What a plan answers: users, changes that fit, settings.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "quire/plan/alternatives.h"
#include "quire/plan/testing/planned.h"
#include "quire/plan/traffic.h"
#include "quire/plan/tuned_config.h"
#include "quire/plan/units.h"

namespace quire::plan {
namespace {

using testing::options_on;
using testing::plan_on;
using testing::round_device;

/// A plan of the small model whose pool has exactly `blocks` blocks.
Plan with_blocks(int64_t blocks) {
  PlanOptions options = options_on(round_device(), "q4_0");
  options.max_model_len = 1024;
  options.size_pool = [blocks](const PoolDemand& demand) -> PoolSize {
    return {.num_blocks = blocks, .max_model_len = demand.length};
  };
  return make_plan(std::move(*find_known_model("SmolLM2-135M")), std::move(options));
}

TEST(Traffic, AnAmplePoolPreemptsNobody) {
  const TrafficResult result = play_traffic(
      with_blocks(4096), {.users = 16, .lengths = {{.prompt_len = 100, .output_len = 50}}});
  EXPECT_EQ(result.requests, 128);
  EXPECT_EQ(result.output_tokens, 128 * 50);
  EXPECT_EQ(result.preemptions, 0);
  EXPECT_EQ(result.preemption_probability(), 0);
  EXPECT_EQ(result.peak_running, 16);
  EXPECT_GT(result.tokens_per_s, 0);
  EXPECT_GT(result.ttft_p99, result.itl_mean);
}

TEST(Traffic, ATightPoolPreemptsSome) {
  // 16 x 150 tokens need 160 blocks at their ends; there are 100.
  const TrafficOptions options{.users = 16, .lengths = {{.prompt_len = 100, .output_len = 50}}};
  const TrafficResult tight = play_traffic(with_blocks(100), options);
  EXPECT_GT(tight.preemption_probability(), 0);
  EXPECT_LE(tight.preemption_probability(), 1);
  EXPECT_EQ(tight.output_tokens, 128 * 50) << "all the same";
  EXPECT_GT(tight.peak_kv_usage, 0.9);
  EXPECT_LT(tight.tokens_per_s, play_traffic(with_blocks(4096), options).tokens_per_s);
}

TEST(Traffic, TheSeedDecides) {
  std::vector<RequestLength> lengths;
  for (int32_t i = 1; i < 40; ++i) lengths.push_back({.prompt_len = 7 * i, .output_len = 3 * i});
  const Plan plan = with_blocks(120);
  const auto play = [&](uint64_t seed) {
    return play_traffic(plan, {.users = 12, .lengths = lengths, .seed = seed});
  };
  EXPECT_EQ(play(1).seconds, play(1).seconds);
  EXPECT_EQ(play(1).preempted_requests, play(1).preempted_requests);
  EXPECT_NE(play(1).seconds, play(2).seconds);
}

TEST(Traffic, WhatIsTooLongIsRefusedAndSaid) {
  const Plan plan = with_blocks(4096);
  const TrafficResult some = play_traffic(
      plan,
      {.users = 2,
       .lengths = {{.prompt_len = 10, .output_len = 5}, {.prompt_len = 2000, .output_len = 5}}});
  EXPECT_GT(some.refused, 0);
  EXPECT_LT(some.refused, some.requests);
  EXPECT_THROW(play_traffic(plan, {.users = 2, .lengths = {{.prompt_len = 2000, .output_len = 5}}}),
               LoadError);
}

TEST(Traffic, LengthsAreReadLineByLine) {
  const auto lengths = parse_request_lengths(
      "{\"input_len\": 5, \"output_len\": 7}\n\n{\"output_len\": 1, \"input_len\": 2, \"x\": 0}\n",
      "l.jsonl");
  ASSERT_EQ(lengths.size(), 2u);
  EXPECT_EQ(lengths[1].prompt_len, 2);
  for (const char* wrong : {"", "{}", "[1]", "{\"input_len\": 0, \"output_len\": 1}",
                            "{\"input_len\": 1, \"output_len\": \"a\"}"}) {
    EXPECT_THROW(parse_request_lengths(wrong, "l.jsonl"), LoadError) << wrong;
  }
}

Plan on_eight_gib(std::string_view format, std::optional<int64_t> length) {
  Device device = round_device();
  device.memory_bytes = int64_t{8} << 30;
  PlanOptions options = options_on(device, format);
  options.max_model_len = length;
  return make_plan(std::move(*find_known_model("Llama-3.1-8B")), std::move(options));
}

TEST(Alternatives, TheCheapestThatFitsComesFirst) {
  const Plan plan = on_eight_gib("bf16", 8192);
  ASSERT_FALSE(plan.fits);
  const auto found = find_alternatives(plan, {});
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found.front().fits);
  EXPECT_EQ(found.front().price, Price::kPrecision4) << "6 bits and a sequence take 8.1 GiB";
  bool fits = true;
  Price price = Price::kNothing;
  for (const Alternative& each : found) {
    EXPECT_TRUE(fits || !each.fits) << "those that fit come first";
    if (each.fits) {
      EXPECT_GE(each.price, price);
      price = each.price;
      EXPECT_LE(each.rank_bytes, int64_t{8} << 30);
      EXPECT_GE(each.sequences, 1);
    }
    fits = each.fits;
  }
  // The change does what it says.
  EXPECT_TRUE(on_eight_gib("q4_0", 8192).fits);
}

TEST(Alternatives, AShorterContextIsFoundWhereNoneWasAsked) {
  const Plan plan = on_eight_gib("q4_0", std::nullopt);
  ASSERT_FALSE(plan.fits) << "131072 tokens take 16 GiB";
  const auto found = find_alternatives(plan, {});
  ASSERT_TRUE(found.front().fits);
  EXPECT_EQ(found.front().price, Price::kContext);
  const int64_t length = found.front().max_model_len;
  EXPECT_TRUE(on_eight_gib("q4_0", length).fits);
  EXPECT_FALSE(on_eight_gib("q4_0", length + 16).fits);
}

TEST(Alternatives, UsersAreHeldAtOnce) {
  const Plan plan = on_eight_gib("q4_0", 8192);
  ASSERT_TRUE(plan.fits);
  const Wish few{.context = 1024, .sequences = 8, .tokens_each = 1024};
  const Wish many{.context = 1024, .sequences = 64, .tokens_each = 1024};
  EXPECT_TRUE(satisfies(plan, few));
  EXPECT_FALSE(satisfies(plan, many));
  for (const Alternative& each : find_alternatives(plan, many)) {
    EXPECT_TRUE(!each.fits || each.sequences >= 64) << each.change;
  }
}

TEST(TunedConfig, EveryKeyHasAValueAndAReason) {
  const Plan plan = plan_on(round_device(), "Llama-3.2-1B", "q8_0");
  const auto config = tune(plan, "m.gguf", forecast(plan, 512, 128), 640);
  for (const char* key :
       {"model", "dtype", "tensor_parallel_size", "gpu_memory_utilization", "max_model_len",
        "max_num_batched_tokens", "max_num_seqs", "enable_chunked_prefill", "block_size",
        "swap_space", "enforce_eager", "disable_log_stats"}) {
    const Setting* setting = config.find(key);
    ASSERT_NE(setting, nullptr) << key;
    EXPECT_FALSE(setting->value.empty()) << key;
    EXPECT_TRUE(setting->why.ends_with(".")) << key << ": " << setting->why;
    EXPECT_NE(config.yaml().find(std::string(key) + ": "), std::string::npos);
  }
  EXPECT_EQ(config.find("max_model_len")->value, "131072");
  const std::string line = config.command_line("m.gguf");
  EXPECT_TRUE(line.starts_with("quire serve m.gguf --dtype ")) << line;
  EXPECT_NE(line.find("--enable-chunked-prefill"), std::string::npos);
  EXPECT_EQ(line.find("--enforce-eager"), std::string::npos) << "false is said by its absence";
}

TEST(Units, SizesAreReadBothWays) {
  EXPECT_EQ(parse_bytes("8GiB", "--memory"), int64_t{8} << 30);
  EXPECT_EQ(parse_bytes("8G", "--memory"), int64_t{8} << 30);
  EXPECT_EQ(parse_bytes("80GB", "--memory"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.5 MiB", "--memory"), 3 << 19);
  EXPECT_EQ(parse_bytes("4096", "--memory"), 4096);
  for (const char* wrong : {"", "GiB", "-3G", "8X", "8GiBs", "1e30"}) {
    EXPECT_THROW(parse_bytes(wrong, "--memory"), LoadError) << wrong;
  }
  EXPECT_EQ(bytes_text(14.96 * 1024 * 1024 * 1024), "15.0 GiB");
  EXPECT_EQ(bytes_text(-1536), "-1.50 KiB");
  EXPECT_EQ(count_text(8'030'261'248), "8,030,261,248");
  EXPECT_EQ(count_text(-999), "-999");
  EXPECT_EQ(rate_text(4.8e12, "B/s"), "4.80 TB/s");
  EXPECT_EQ(time_text(0.0123), "12.3 ms");
}

}  // namespace
}  // namespace quire::plan
