#include "quire/plan/model_table.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "quire/base/check.h"
#include "quire/base/error.h"
#include "quire/plan/known_models.h"
#include "quire/plan/plan.h"
#include "quire/plan/units.h"

namespace quire::plan {
namespace {

constexpr int64_t kTokens = 4096;

constexpr std::array<std::string_view, 5> kModels = {
    "Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B", "Mistral-7B-v0.3", "Qwen2-72B"};
struct Row {
  std::string_view name;
  std::string_view format;
};
constexpr std::array<Row, 4> kRows = {
    {{"FP16", "fp16"}, {"INT8", "int8"}, {"NF4", "nf4"}, {"GPTQ-4", "gptq-4"}}};

PoolSize rest_of_memory(const PoolDemand& demand) {
  const int64_t room = demand.memory_bytes * 9 / 10 - demand.fixed_bytes;
  if (room / demand.block_bytes * demand.block_tokens < demand.length) {
    throw LoadError("memory", "too little");
  }
  return {.num_blocks = room / demand.block_bytes, .max_model_len = demand.length};
}

std::optional<Plan> plan_on(const Device& device, std::string_view model,
                            const WeightFormat& format, int32_t ranks) {
  PlanOptions options;
  options.device = device;
  options.memory_bytes = device.memory_bytes;
  options.record.format = &format;
  options.record.tensor_parallel = ranks;
  options.max_model_len = kTokens;
  options.size_pool = rest_of_memory;
  auto known = find_known_model(model);
  QUIRE_CHECK(known.has_value());
  try {
    return make_plan(std::move(*known), std::move(options));
  } catch (const LoadError&) {
    return std::nullopt;  // a degree that does not divide
  }
}

std::string devices_needed(const Device& device, std::string_view model,
                           const WeightFormat& format) {
  for (const int32_t ranks : {1, 2, 4, 8, 16}) {
    const auto plan = plan_on(device, model, format, ranks);
    if (plan && plan->fits) return fmt::format("{}", ranks);
  }
  return "more than 16";
}

}  // namespace

std::string model_table() {
  const auto devices = built_in_devices();
  const Device& device = find_device(devices, "H100");
  std::string text = fmt::format(
      "| model | parameters | format | weights, textbook | weights, counted | KV a token | KV of "
      "{0} "
      "tokens | the same, 32 sequences | activations, 2048 a step | H100 80 GB needed |\n"
      "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|\n",
      kTokens);
  for (const std::string_view model : kModels) {
    for (const Row& row : kRows) {
      const WeightFormat& format = find_weight_format(row.format);
      const auto plan = plan_on(device, model, format, 1);
      QUIRE_CHECK(plan.has_value());
      const RankLedger& rank = plan->ranks.front();
      const auto gib = [](double bytes) { return gib_text(bytes); };
      const auto sequence = static_cast<double>(plan->sequence_bytes(kTokens));
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", model,
                          count_text(plan->parameters), row.name,
                          gib(textbook_weight_bytes(plan->parameters, format.textbook_bits)),
                          gib(static_cast<double>(rank.bytes(LedgerLine::Part::kWeights))),
                          bytes_text(static_cast<double>(rank.kv_token_bytes)), gib(sequence),
                          gib(32 * sequence),
                          bytes_text(static_cast<double>(rank.bytes(LedgerLine::Part::kArena))),
                          devices_needed(device, model, format));
    }
  }
  return text;
}

}  // namespace quire::plan
