#include "quire/plan/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "quire/base/check.h"
#include "quire/base/error.h"

namespace quire::plan {
namespace {

using checkpoint::ModelConfig;

/// The textbook's bytes a parameter: by the format wanted, or by what the files mostly hold.
double textbook_bits(const Plan& plan) {
  if (plan.options.record.format != nullptr) return plan.options.record.format->textbook_bits;
  const auto* stored = plan.model.tensors
                           ? plan.model.tensors->find("model.layers.0.mlp.down_proj.weight")
                           : nullptr;
  const DType dtype = stored != nullptr ? stored->dtype : plan.model.config.dtype;
  switch (dtype) {
    case DType::kF32:
      return 32;
    case DType::kQ8_0:
      return 8;
    case DType::kQ6_K:
      return 6;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
      return 5;
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ4_K:
      return 4;
    case DType::kQ3_K:
      return 3;
    case DType::kQ2_K:
      return 2;
    default:
      return 16;
  }
}

std::string why_weights(const Plan& plan, int64_t scales, int64_t padding) {
  std::string why;
  const auto add = [&why](const std::string& text) { why += (why.empty() ? "" : "; ") + text; };
  if (scales > 0) add(fmt::format("{} B of scales and minima", scales));
  if (padding > 0) add(fmt::format("{} B of padding to panels of 16 outputs", padding));
  std::map<int, std::string> wider;  // by the bits they are held with
  for (const LedgerLine& line : plan.ranks.front().lines) {
    if (line.part != LedgerLine::Part::kWeights || line.parameters == 0) continue;
    const double bits = static_cast<double>(line.bytes - line.scale_bytes - line.padding_bytes) *
                        8 / static_cast<double>(line.parameters);
    if (line.format.starts_with("fp32") || bits < textbook_bits(plan) + 0.5) continue;
    std::string& names = wider[static_cast<int>(bits + 0.5)];
    names += (names.empty() ? "" : ", ") + line.name;
  }
  for (const auto& [bits, names] : wider) {
    add(fmt::format("held wider than the formula has it, with {} bits: {}", bits, names));
  }
  add("norms, biases and rotary frequencies are fp32");
  if (plan.ranks.size() > 1) {
    add("summed over ranks, which each hold the norms and may share KV heads, and pad the "
        "vocabulary to their number");
  }
  return why;
}

Comparison compare_weights(const Plan& plan) {
  int64_t bytes = 0;
  int64_t scales = 0;
  int64_t padding = 0;
  for (const RankLedger& rank : plan.ranks) {
    for (const LedgerLine& line : rank.lines) {
      if (line.part != LedgerLine::Part::kWeights) continue;
      bytes += line.bytes;
      scales += line.scale_bytes;
      padding += line.padding_bytes;
    }
  }
  const double bits = textbook_bits(plan);
  return {.name = "weights",
          .formula = fmt::format("{} parameters x {} bytes", plan.parameters, bits / 8),
          .textbook = textbook_weight_bytes(plan.parameters, bits),
          .counted = bytes,
          .why = why_weights(plan, scales, padding)};
}

Comparison compare_kv(const Plan& plan) {
  const ModelConfig& config = plan.model.config;
  const int64_t tokens = plan.max_model_len;
  const int64_t width = dtype_info(plan.kv_dtype).block_bytes;
  int64_t counted = 0;
  for (const RankLedger& rank : plan.ranks) {
    counted += plan.sequence_blocks(tokens) * rank.kv_block_bytes;
  }
  std::string why =
      tokens % plan.block_tokens() == 0
          ? "none: the context is whole blocks"
          : fmt::format("the last block of {} tokens is taken whole", plan.block_tokens());
  if (plan.model.window > 0 && tokens > plan.model.window) {
    why = fmt::format("a sequence holds its window of {} tokens and a block", plan.model.window);
  }
  if (plan.ranks.front().share.kv_replicas > 1) {
    why += fmt::format("; each KV head is held by {} ranks", plan.ranks.front().share.kv_replicas);
  }
  return {.name = "KV cache, one sequence",
          .formula =
              fmt::format("2 x {} layers x {} KV heads x {} x {} tokens x 1 x {} bytes",
                          config.num_layers, config.num_kv_heads, config.head_dim, tokens, width),
          .textbook = static_cast<double>(textbook_kv_bytes(config.num_layers, config.num_kv_heads,
                                                            config.head_dim, tokens, 1, width)),
          .counted = counted,
          .why = std::move(why)};
}

Comparison compare_activations(const Plan& plan) {
  const ModelConfig& config = plan.model.config;
  const int64_t tokens = plan.options.record.max_tokens;
  int64_t counted = 0;
  for (const RankLedger& rank : plan.ranks) {
    counted = std::max(counted, rank.bytes(LedgerLine::Part::kArena));
  }
  return {
      .name = "activations",
      .formula = fmt::format("2 x {} hidden x {} tokens x 1 x 2 bytes x {} layers",
                             config.hidden_size, tokens, config.num_layers),
      .textbook = static_cast<double>(
          textbook_activation_bytes(config.hidden_size, tokens, 1, 2, config.num_layers)),
      .counted = counted,
      .why = fmt::format(
          "the formula keeps every layer's input and output, as training must; a step needs one "
          "layer at a time, and storage is given again once its last reader has run. It is the "
          "widest moment that counts ({}), in fp32, for {} tokens a step whatever the context",
          plan.fullest().arena_peak.operation, tokens)};
}

void check_options(const PlanOptions& options, const ModelConfig& config) {
  const auto positive = [](std::string_view option, int64_t value) {
    if (value < 1) throw LoadError(option, "", "a positive number", fmt::format("{}", value));
  };
  positive("--max-num-batched-tokens", options.record.max_tokens);
  positive("--max-num-seqs", options.max_num_seqs);
  if (options.record.block_tokens < 16 || options.record.block_tokens % 16 != 0) {
    throw LoadError("--block-size", "", "a multiple of 16",
                    fmt::format("{}", options.record.block_tokens));
  }
  if (options.max_model_len.value_or(1) > config.max_position) {
    throw LoadError("--max-model-len", "",
                    fmt::format("1 to {}, the model's own limit", config.max_position),
                    fmt::format("{}", *options.max_model_len));
  }
  if (!(options.utilization > 0 && options.utilization <= 1)) {
    throw LoadError("--gpu-memory-utilization", "", "more than 0 and at most 1",
                    fmt::format("{}", options.utilization));
  }
}

void size_pool(Plan& plan) {
  const PlanOptions& options = plan.options;
  const int64_t own = plan.model.config.max_position;
  const bool longest = options.max_model_len.value_or(1) <= 0;
  const int64_t length = longest ? own : options.max_model_len.value_or(own);
  plan.max_model_len = length;
  // With a window, a sequence needs blocks for that many tokens at most.
  const int64_t held = std::min(length, plan.sequence_blocks(length) * plan.block_tokens());
  try {
    // Every rank gets as many blocks as the one with the least room.
    plan.num_blocks = INT64_MAX;
    for (const RankLedger& rank : plan.ranks) {
      const PoolSize size = options.size_pool({.block_bytes = rank.kv_block_bytes,
                                               .block_tokens = plan.block_tokens(),
                                               .length = held,
                                               .may_shorten = longest,
                                               .fixed_bytes = rank.fixed_bytes(),
                                               .memory_bytes = options.memory_bytes});
      plan.num_blocks = std::min(plan.num_blocks, size.num_blocks);
      if (size.max_model_len < held) {
        plan.max_model_len = std::min(plan.max_model_len, size.max_model_len);
      }
    }
    plan.fits = true;
  } catch (const LoadError& error) {
    plan.fits = false;
    plan.problem = error.what();
    plan.num_blocks = 0;
  }
}

}  // namespace

int64_t Plan::budget_bytes() const {
  return static_cast<int64_t>(options.utilization * static_cast<double>(options.memory_bytes));
}

const RankLedger& Plan::fullest() const {
  QUIRE_CHECK(!ranks.empty());
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.fixed_bytes() < b.fixed_bytes();
  });
}

int64_t Plan::sequence_blocks(int64_t tokens) const {
  return blocks_for(tokens, block_tokens(), model.window);
}

int64_t Plan::sequence_bytes(int64_t tokens) const {
  int64_t block = 0;
  for (const RankLedger& rank : ranks) block = std::max(block, rank.kv_block_bytes);
  return sequence_blocks(tokens) * block;
}

double Plan::concurrency(int64_t tokens) const {
  return static_cast<double>(num_blocks) / static_cast<double>(sequence_blocks(tokens));
}

Plan make_plan(PlannedModel model, PlanOptions options) {
  check_options(options, model.config);
  QUIRE_CHECK(options.size_pool != nullptr);
  options.record.kind = options.device.kind;
  if (options.record.format == nullptr && !model.quantized_as.empty()) {
    options.record.format = &find_weight_format(model.quantized_as);
  }
  Plan plan;
  plan.weight_format =
      options.record.format != nullptr ? std::string(options.record.format->name) : "as stored";
  plan.kv_dtype = planned_kv_dtype(model, options.record);
  plan.parameters = count_parameters(model);
  plan.stages = record_stages(model, options.record);
  const LedgerOptions ledger{.kind = options.device.kind,
                             .workers = options.device.workers,
                             .tensor_parallel = options.record.tensor_parallel,
                             .pipeline_parallel = options.record.pipeline_parallel,
                             .enforce_eager = options.enforce_eager,
                             .vocab_size = model.config.vocab_size,
                             .hidden_size = model.config.hidden_size,
                             .max_tokens = options.record.max_tokens,
                             .device_name = options.device.name};
  for (const StageProgram& stage : plan.stages) {
    for (const RankShare& share : stage.ranks) {
      plan.ranks.push_back(count_ledger(stage, share, ledger));
    }
  }
  plan.model = std::move(model);
  plan.options = std::move(options);
  size_pool(plan);
  plan.comparisons = {compare_weights(plan), compare_kv(plan), compare_activations(plan)};
  return plan;
}

}  // namespace quire::plan
