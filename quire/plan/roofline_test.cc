#include "quire/plan/roofline.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/plan/forecast.h"
#include "quire/plan/testing/planned.h"

namespace quire::plan {
namespace {

using testing::plan_on;
using testing::round_device;

const LineTime& named(const StepTime& step, std::string_view name) {
  for (const LineTime& line : step.lines) {
    if (line.name == name) return line;
  }
  ADD_FAILURE() << "no line " << name;
  return step.lines.front();
}

// 1 Top/s of fp32, 2 of bf16, 4 of int8 and 100 GB/s.
TEST(Roofline, ALineTakesTheLongerOfArithmeticAndMemory) {
  const Plan plan = plan_on(round_device(), "Llama-3.2-1B", "q8_0");
  const StepTime decode = step_time(plan, decode_step(1, 100));
  const LineTime& down = named(decode, "layers.3.mlp.down_proj");
  EXPECT_EQ(down.act, backend::ActType::kI8);
  EXPECT_EQ(down.operations, 2 * int64_t{2048} * 8192);
  EXPECT_TRUE(down.memory_bound);
  EXPECT_DOUBLE_EQ(down.seconds, static_cast<double>(down.bytes) / 100e9);
  EXPECT_DOUBLE_EQ(down.ceiling, 100e9 * down.intensity);
  EXPECT_EQ(down.level, "memory");

  const StepTime prefill = step_time(plan, prefill_steps(2048, 2048).front());
  const LineTime& same = named(prefill, "layers.3.mlp.down_proj");
  EXPECT_EQ(same.operations, 2048 * down.operations);
  EXPECT_FALSE(same.memory_bound);
  EXPECT_DOUBLE_EQ(same.seconds, static_cast<double>(same.operations) / 4e12);
  EXPECT_DOUBLE_EQ(same.ceiling, 4e12);
}

TEST(Roofline, TheRidgeIsWhereTheRoofTurns) {
  const Device device = round_device();
  EXPECT_DOUBLE_EQ(device.ridge(backend::ActType::kF32), 10);
  EXPECT_DOUBLE_EQ(device.ridge(backend::ActType::kBF16), 20);
  EXPECT_DOUBLE_EQ(device.ridge(backend::ActType::kI8), 40);
}

// A model that lies in the last cache is read at its rate; one that does not at the memory's.
TEST(Roofline, WhatFitsACacheIsReadFromIt) {
  Device device = round_device();
  device.levels.insert(device.levels.begin(),
                       {.name = "L3", .bytes = int64_t{1} << 30, .bytes_per_second = 400e9});
  const Plan small = plan_on(device, "SmolLM2-135M", "q4_0");
  EXPECT_EQ(named(step_time(small, decode_step(1, 100)), "layers.3.mlp.down_proj").level, "L3");
  const Plan large = plan_on(device, "Llama-3.2-3B", "bf16");
  EXPECT_EQ(named(step_time(large, decode_step(1, 100)), "layers.3.mlp.down_proj").level, "memory");
  // A level whose rate nobody knows is not reckoned with.
  device.levels.front().bytes_per_second = 0;
  const Plan unknown = plan_on(device, "SmolLM2-135M", "q4_0");
  EXPECT_EQ(named(step_time(unknown, decode_step(1, 100)), "layers.3.mlp.down_proj").level,
            "memory");
}

TEST(Roofline, SumsAreThoseOfTheLines) {
  const Plan plan = plan_on(round_device(), "SmolLM2-135M", "q4_0");
  const StepTime step = step_time(plan, decode_step(4, 1000));
  double seconds = 0;
  int64_t operations = 0;
  int64_t bytes = 0;
  for (const LineTime& line : step.lines) {
    seconds += line.seconds;
    operations += line.operations;
    bytes += line.bytes;
  }
  EXPECT_NEAR(step.compute_seconds, seconds, 1e-12);
  EXPECT_EQ(step.operations, operations);
  EXPECT_EQ(step.bytes, bytes);
  EXPECT_LT(step.fast_seconds, step.slow_seconds);
  int64_t by_class = 0;
  for (const LineClass& each : classes_of(step.lines)) by_class += each.sum.operations;
  EXPECT_EQ(by_class, operations);
}

// Two all-reduces a layer and one behind the embedding, then the logits: by hand for one token.
TEST(Roofline, WhereNothingOverlapsTimesAddUp) {
  Device device = round_device();
  device.compute = {0.5, 1.0};
  device.bandwidth = {0.5, 1.0};
  const StepTime both = step_time(plan_on(device, "SmolLM2-135M", "q4_0"), decode_step(16, 100));
  device.overlap = 0;
  const StepTime each = step_time(plan_on(device, "SmolLM2-135M", "q4_0"), decode_step(16, 100));
  double sum = 0;
  for (const LineTime& line : each.lines) sum += line.memory_seconds + line.arithmetic_seconds;
  EXPECT_NEAR(each.fast_seconds, sum, 1e-12);
  EXPECT_NEAR(each.slow_seconds, 2 * sum, 1e-12);
  EXPECT_NEAR(both.fast_seconds, both.compute_seconds, 1e-12) << "the roofline itself";
  EXPECT_LT(both.fast_seconds, each.fast_seconds);
}

TEST(Roofline, TensorParallelRanksTalkTwiceALayer) {
  Device device = round_device();
  device.link = {.name = "wire", .bytes_per_second = 10e9, .latency_seconds = 5e-6};
  const Plan plan = plan_on(device, "Llama-3.2-1B", "bf16", 4);
  const StepTime step = step_time(plan, decode_step(1, 10));
  const double reduce = 5e-6 + 2 * 3.0 / 4 * 2048 * 4 / 10e9;
  const double gather = 5e-6 + 128256 * 4 * 3.0 / 4 / 10e9;
  EXPECT_NEAR(step.link_seconds, 33 * reduce + gather, 1e-12);
  EXPECT_EQ(step_time(plan_on(device, "Llama-3.2-1B", "bf16"), decode_step(1, 10)).link_seconds, 0);
}

TEST(Roofline, StagesHandOnHiddenStates) {
  Device device = round_device();
  device.link = {.name = "wire", .bytes_per_second = 10e9, .latency_seconds = 5e-6};
  const Plan plan = plan_on(device, "Llama-3.2-1B", "bf16", 1, 4);
  const StepTime step = step_time(plan, decode_step(2, 10));
  EXPECT_NEAR(step.link_seconds, 3 * (5e-6 + 2.0 * 2048 * 4 / 10e9), 1e-12);
  // All stages together do what one rank would.
  const StepTime alone = step_time(plan_on(device, "Llama-3.2-1B", "bf16"), decode_step(2, 10));
  EXPECT_EQ(step.operations, alone.operations);
}

TEST(Forecast, BatchesShareTheWeights) {
  const Plan plan = plan_on(round_device(), "Llama-3.2-1B", "q8_0");
  const Forecast f = forecast(plan, 512, 128);
  EXPECT_EQ(f.batches.front().batch, 1);
  EXPECT_EQ(f.batches.back().batch, 128);
  for (size_t i = 1; i < f.batches.size(); ++i) {
    EXPECT_GT(f.batches[i].itl.fast, f.batches[i - 1].itl.fast);
    EXPECT_GT(f.batches[i].fast_tokens_per_s(), f.batches[i - 1].fast_tokens_per_s());
    EXPECT_GT(f.batches[i].intensity(), f.batches[i - 1].intensity());
  }
  // A prompt of two steps takes both.
  EXPECT_EQ(prefill_steps(3000, 2048).size(), 2u);
  EXPECT_EQ(prefill_steps(3000, 2048)[1].rows[0].context_len, 3000);
  EXPECT_GT(forecast(plan, 3000, 128).ttft.fast, forecast(plan, 2048, 128).ttft.fast);
}

TEST(StepClock, AgreesWithTheLinesItWasMadeFrom) {
  const Plan plan = plan_on(round_device(), "Llama-3.2-1B", "q8_0");
  const StepClock clock(plan);
  for (const auto& [batch, context] :
       {std::pair<int64_t, int64_t>{1, 100}, {8, 1000}, {24, 700}, {100, 300}}) {
    const double exact = step_time(plan, decode_step(batch, context)).middle();
    EXPECT_NEAR(clock.seconds(batch, batch * context), exact, 0.05 * exact)
        << batch << " x " << context;
  }
}

TEST(Devices, AFileIsReadAndItsFaultsAreNamed) {
  const auto one = parse_devices(
      R"({"devices": [{"name": "box", "kind": "cpu", "memory_mib": 1024, "workers": 4,
          "peak_tops": {"fp32": 1}, "levels": [{"name": "ram", "gb_per_s": 20}]}]})",
      "box.json");
  EXPECT_EQ(one.front().memory_bytes, int64_t{1} << 30);
  EXPECT_DOUBLE_EQ(one.front().peak_int8, 1e12) << "what is not given is no faster than fp32";
  const auto error_of = [](std::string_view text) -> std::string {
    try {
      parse_devices(text, "box.json");
    } catch (const LoadError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(error_of("{").find("box.json"), std::string::npos);
  EXPECT_NE(error_of(R"({"devices": []})").find("at least one"), std::string::npos);
  EXPECT_NE(error_of(R"({"devices": [{"name": "x", "kind": "tpu"}]})").find("cpu or gpu"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"devices": [{"name": "x", "kind": "cpu", "memory_mib": "8"}]})")
                .find("memory_mib"),
            std::string::npos);
}

TEST(Devices, EveryBuiltInOneHasCeilingsAndSources) {
  const auto devices = built_in_devices();
  EXPECT_GE(devices.size(), 10u);
  for (const Device& device : devices) {
    EXPECT_TRUE(device.has_ceilings()) << device.name;
    EXPECT_FALSE(device.sources.empty()) << device.name;
    EXPECT_GT(device.memory_bytes, int64_t{8} << 30) << device.name;
  }
}

}  // namespace
}  // namespace quire::plan
