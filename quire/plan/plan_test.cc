// What textbooks and checkpoints say, against what a plan counts.
#include "quire/plan/plan.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/plan/known_models.h"

namespace quire::plan {
namespace {

/// "14.9": in GiB, rounded as people quote it.
std::string gib(double bytes) {
  return fmt::format("{:.1f}", bytes / (1024.0 * 1024.0 * 1024.0));
}

PlannedModel known(std::string_view name) {
  auto model = find_known_model(name);
  EXPECT_TRUE(model.has_value()) << name;
  return std::move(*model);
}

/// A pool that takes all that is left of `memory`.
PlanOptions options_with(int64_t memory, Device::Kind kind = Device::Kind::kCpu) {
  PlanOptions options;
  options.device.kind = kind;
  options.device.name = "test";
  options.memory_bytes = memory;
  options.size_pool = [](const PoolDemand& demand) -> PoolSize {
    const int64_t blocks = (demand.memory_bytes - demand.fixed_bytes) / demand.block_bytes;
    const int64_t tokens = blocks * demand.block_tokens;
    if (tokens >= demand.length) return {blocks, demand.length};
    if (!demand.may_shorten || tokens <= 0) throw LoadError("memory", "too little");
    return {blocks, tokens};
  };
  return options;
}

Plan plan_of(std::string_view name, PlanOptions options) {
  return make_plan(known(name), std::move(options));
}

int64_t sum(const RankLedger& rank, std::string_view name) {
  int64_t bytes = 0;
  for (const LedgerLine& line : rank.lines) {
    if (line.name == name) bytes += line.bytes;
  }
  return bytes;
}

TEST(Textbook, WeightsInHalfPrecision) {
  EXPECT_EQ(gib(textbook_weight_bytes(8'000'000'000, 16)), "14.9");
  EXPECT_EQ(gib(textbook_weight_bytes(70'000'000'000, 16)), "130.4");
  EXPECT_EQ(gib(textbook_weight_bytes(405'000'000'000, 16)), "754.4");
  EXPECT_EQ(gib(textbook_weight_bytes(7'000'000'000, 16)), "13.0");
  EXPECT_EQ(gib(textbook_weight_bytes(72'000'000'000, 16)), "134.1");
}

// Llama-3-70B is the textbook's model: 80 layers, 8 KV heads of 128. Our pages take the same.
TEST(Textbook, KvOfTheSeventyBillionModelOverBatches) {
  const Plan plan = plan_of("Llama-3-70B", options_with(int64_t{1} << 40, Device::Kind::kGpu));
  const std::pair<int64_t, double> expected[] = {{1, 1.25}, {4, 5}, {8, 10}, {16, 20}, {32, 40}};
  for (const auto& [batch, size] : expected) {
    const double bytes = size * 1024 * 1024 * 1024;
    EXPECT_EQ(static_cast<double>(textbook_kv_bytes(80, 8, 128, 4096, batch, 2)), bytes);
    EXPECT_EQ(static_cast<double>(batch * plan.sequence_bytes(4096)), bytes);
  }
}

TEST(Textbook, ActivationsOfTenGibibytesNeedFarLess) {
  EXPECT_EQ(gib(static_cast<double>(textbook_activation_bytes(8192, 4096, 1, 2, 80))), "10.0");
  PlanOptions options = options_with(int64_t{1} << 40, Device::Kind::kGpu);
  options.record.max_tokens = 4096;
  const Plan plan = plan_of("Llama-3-70B", std::move(options));
  const Comparison& activations = plan.comparisons[2];
  EXPECT_EQ(gib(activations.textbook), "10.0");
  EXPECT_EQ(activations.counted, plan.stages[0].program.arena_bytes);
  // gate and up [4096, 28672] in fp32 and the residual are alive at once: at least those, and less
  // than a quarter of the formula's ten.
  const int64_t floor = int64_t{4096} * (2 * 28672 + 8192) * 4;
  EXPECT_GE(activations.counted, floor);
  EXPECT_LT(static_cast<double>(activations.counted), activations.textbook / 4);
  EXPECT_NE(activations.why.find("mlp"), std::string::npos) << activations.why;
}

// By the models' own index files.
TEST(KnownModels, ParametersAreThoseOfTheCheckpoints) {
  const std::pair<const char*, int64_t> expected[] = {
      {"Llama-2-7B", 6'738'415'616},        {"Llama-2-13B", 13'015'864'320},
      {"Llama-2-70B", 68'976'648'192},      {"CodeLlama-34B", 33'743'970'304},
      {"Llama-3-8B", 8'030'261'248},        {"Llama-3-70B", 70'553'706'496},
      {"Llama-3.1-8B", 8'030'261'248},      {"Llama-3.1-70B", 70'553'706'496},
      {"Llama-3.1-405B", 405'853'388'800},  {"Llama-3.2-1B", 1'235'814'400},
      {"Llama-3.2-3B", 3'212'749'824},      {"TinyLlama-1.1B", 1'100'048'384},
      {"SmolLM2-135M", 134'515'008},        {"SmolLM2-360M", 361'821'120},
      {"SmolLM2-1.7B", 1'711'376'384},      {"Yi-6B", 6'061'035'520},
      {"Mistral-7B-v0.1", 7'241'732'096},   {"Mistral-7B-v0.3", 7'248'023'552},
      {"Mistral-Nemo-12B", 12'247'782'400}, {"Mistral-Small-24B", 23'572'403'200},
      {"Qwen2-0.5B", 494'032'768},          {"Qwen2-1.5B", 1'543'714'304},
      {"Qwen2-72B", 72'706'203'648},        {"Qwen2.5-7B", 7'615'616'512},
      {"Qwen2.5-14B", 14'770'033'664},      {"Qwen2.5-32B", 32'763'876'352},
  };
  EXPECT_EQ(std::size(expected), known_model_names().size());
  for (const auto& [name, parameters] : expected) {
    EXPECT_EQ(count_parameters(known(name)), parameters) << name;
  }
}

TEST(KnownModels, NoneOfThatName) {
  EXPECT_FALSE(find_known_model("llama-9").has_value());
  EXPECT_TRUE(find_known_model("LLAMA-3.1-8b").has_value());
}

TEST(Plan, AHeadTiedToTheEmbeddingCountsOnce) {
  const Plan plan = plan_of("Llama-3.2-1B", options_with(int64_t{1} << 40, Device::Kind::kGpu));
  EXPECT_EQ(sum(plan.ranks[0], "embed_tokens"), int64_t{128256} * 2048 * 2);
  EXPECT_EQ(sum(plan.ranks[0], "lm_head"), 0);
  const Plan untied = plan_of("Llama-3.1-8B", options_with(int64_t{1} << 40, Device::Kind::kGpu));
  EXPECT_EQ(sum(untied.ranks[0], "lm_head"), int64_t{128256} * 4096 * 2);
}

TEST(Plan, WeightsByFormatWithScalesAndPadding) {
  PlanOptions options = options_with(int64_t{1} << 40);
  options.record.format = &find_weight_format("gptq");
  const Plan plan = plan_of("Llama-3.1-8B", std::move(options));
  const LedgerLine* down = nullptr;
  for (const LedgerLine& line : plan.ranks[0].lines) {
    if (line.name == "down_proj") down = &line;
  }
  ASSERT_NE(down, nullptr);
  const int64_t parameters = int64_t{32} * 4096 * 14336;
  EXPECT_EQ(down->count, 32);
  EXPECT_EQ(down->parameters, parameters);
  EXPECT_EQ(down->scale_bytes, parameters / 128 * 3) << "an fp16 scale and a zero of a byte";
  // Scales and zeros lie in blocks of four groups, and a slice has 14.
  const int64_t packed_scales = parameters / 128 / 14 * 16 * 3;
  EXPECT_EQ(down->padding_bytes, packed_scales - down->scale_bytes);
  EXPECT_EQ(down->bytes, parameters / 2 + packed_scales);
  EXPECT_EQ(sum(plan.ranks[0], "embed_tokens"), int64_t{128256} * 4096 * 2) << "stays 16 bits";
}

TEST(Plan, SeventyBillionOverFourTensorParallelRanks) {
  PlanOptions options = options_with(int64_t{1} << 40, Device::Kind::kGpu);
  options.record.tensor_parallel = 4;
  const Plan plan = plan_of("Llama-3-70B", std::move(options));
  ASSERT_EQ(plan.ranks.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    const RankShare& share = plan.ranks[static_cast<size_t>(i)].share;
    EXPECT_EQ(share.end_head - share.first_head, 16);
    EXPECT_EQ(share.first_head, 16 * i);
    EXPECT_EQ(share.end_kv_head - share.first_kv_head, 2);
    EXPECT_EQ(share.first_kv_head, 2 * i);
    EXPECT_EQ(share.end_layer, 80);
  }
  const int64_t whole = int64_t{80} * 2 * 8 * 128 * 2;
  EXPECT_EQ(plan.ranks[0].kv_token_bytes, whole / 4);
  EXPECT_EQ(sum(plan.ranks[0], "down_proj"), int64_t{80} * 8192 * 28672 * 2 / 4);
}

TEST(Plan, SeventyBillionOverFourStages) {
  PlanOptions options = options_with(int64_t{1} << 40, Device::Kind::kGpu);
  options.record.pipeline_parallel = 4;
  const Plan plan = plan_of("Llama-3-70B", std::move(options));
  ASSERT_EQ(plan.ranks.size(), 4u);
  int64_t parameters = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const RankLedger& rank = plan.ranks[static_cast<size_t>(i)];
    EXPECT_EQ(rank.share.first_layer, 20 * i);
    EXPECT_EQ(rank.share.end_layer, 20 * (i + 1));
    EXPECT_EQ(sum(rank, "embed_tokens") > 0, i == 0);
    EXPECT_EQ(sum(rank, "lm_head") > 0, i == 3);
    EXPECT_EQ(rank.logits_bytes > 0, i == 3);
    for (const LedgerLine& line : rank.lines) {
      if (line.format != "fp32 vectors") parameters += line.parameters;
    }
  }
  EXPECT_EQ(parameters, plan.parameters - (2 * 80 + 1) * 8192);
}

TEST(Plan, UnevenStagesAndReplicatedKvHeads) {
  PlanOptions options = options_with(int64_t{1} << 40, Device::Kind::kGpu);
  options.record.pipeline_parallel = 4;
  const Plan uneven = plan_of("Llama-3.1-405B", std::move(options));
  EXPECT_EQ(uneven.ranks[0].share.end_layer, 32);
  EXPECT_EQ(uneven.ranks[2].share.end_layer, 95);
  EXPECT_EQ(uneven.ranks[3].share.end_layer, 126);

  options = options_with(int64_t{1} << 40, Device::Kind::kGpu);
  options.record.tensor_parallel = 16;
  const Plan replicated = plan_of("Llama-3.1-405B", std::move(options));
  EXPECT_EQ(replicated.ranks[5].share.kv_replicas, 2);
  EXPECT_EQ(replicated.ranks[5].share.first_kv_head, 2);
  EXPECT_EQ(replicated.ranks[5].kv_token_bytes, int64_t{126} * 2 * 128 * 2);
}

TEST(Plan, AWindowBoundsASequence) {
  const Plan plan = plan_of("Mistral-7B-v0.1", options_with(int64_t{1} << 40));
  EXPECT_EQ(plan.sequence_blocks(4096), 256);
  EXPECT_EQ(plan.sequence_blocks(32768), 257);
  EXPECT_EQ(plan.max_model_len, 32768);
}

TEST(Plan, TheLongestContextThatFits) {
  PlanOptions options = options_with(int64_t{24} << 30, Device::Kind::kGpu);
  options.max_model_len = -1;
  const Plan plan = plan_of("Llama-3.1-8B", std::move(options));
  ASSERT_TRUE(plan.fits);
  EXPECT_LT(plan.max_model_len, 131072);
  EXPECT_EQ(plan.max_model_len, plan.num_blocks * 16);
  EXPECT_LE(plan.total_bytes(plan.fullest()), int64_t{24} << 30);
  EXPECT_GT(plan.total_bytes(plan.fullest()) + plan.fullest().kv_block_bytes, int64_t{24} << 30);
  // The same with the model's whole context does not fit, and says so.
  const Plan whole = plan_of("Llama-3.1-8B", options_with(int64_t{24} << 30, Device::Kind::kGpu));
  EXPECT_FALSE(whole.fits);
  EXPECT_NE(whole.problem.find("memory"), std::string::npos);
}

std::string error_of(std::string_view name, const std::function<void(PlanOptions&)>& change) {
  PlanOptions options = options_with(int64_t{1} << 40);
  change(options);
  try {
    plan_of(name, std::move(options));
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plan, BadOptionsGetAClearLine) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  says(error_of("Llama-3-8B", [](auto& o) { o.record.tensor_parallel = 3; }),
       {"--tensor-parallel-size", "divisor", "32", "3"});
  says(error_of("Llama-3-8B", [](auto& o) { o.record.pipeline_parallel = 33; }),
       {"--pipeline-parallel-size", "32", "33"});
  says(error_of("Llama-3-8B", [](auto& o) { o.max_model_len = 8193; }),
       {"--max-model-len", "8192", "8193"});
  says(error_of("Llama-3-8B", [](auto& o) { o.record.kv_cache_dtype = "fp4"; }),
       {"--kv-cache-dtype", "fp4"});
  says(error_of("Llama-3-8B", [](auto& o) { o.record.block_tokens = 24; }), {"--block-size"});
  EXPECT_THROW(find_weight_format("int3"), LoadError);
  EXPECT_THROW(open_planned_model("/no/such/model.gguf"), LoadError);
  const auto devices = built_in_devices();
  EXPECT_EQ(find_device(devices, "rtx-4090").name, "RTX 4090");
  EXPECT_THROW(find_device(devices, "H900"), LoadError);
}

}  // namespace
}  // namespace quire::plan
