#include "quire/plan/rank_program.h"

#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/dryrun/dryrun_backend.h"
#include "quire/base/error.h"
#include "quire/models/program_recorder.h"
#include "quire/models/registry.h"
#include "quire/plan/shape_source.h"
#include "quire/weights/load_options.h"

namespace quire::plan {
namespace {

using backend::ActType;
using backend::WeightSpec;
using backend::dryrun::DryRunBackend;
using checkpoint::ModelConfig;
using weights::WeightDType;

/// The model as one tensor-parallel rank sees it: fewer heads, a narrower MLP, a part of the
/// vocabulary. Where KV heads are fewer than ranks, each is held by several.
ModelConfig share_of(const ModelConfig& whole, int32_t ranks) {
  const auto require = [&](bool holds, std::string_view what, int64_t count) {
    if (holds) return;
    throw LoadError("--tensor-parallel-size", "",
                    fmt::format("a divisor of the model's {} {}", count, what),
                    fmt::format("{}", ranks));
  };
  require(ranks >= 1 && whole.num_heads % ranks == 0, "attention heads", whole.num_heads);
  require(whole.num_kv_heads % ranks == 0 || ranks % whole.num_kv_heads == 0,
          "KV heads (or a multiple of them)", whole.num_kv_heads);
  require(whole.intermediate_size % ranks == 0, "MLP columns", whole.intermediate_size);
  ModelConfig part = whole;
  part.num_heads /= ranks;
  part.num_kv_heads = whole.num_kv_heads >= ranks ? whole.num_kv_heads / ranks : 1;
  part.intermediate_size /= ranks;
  part.vocab_size = (whole.vocab_size + ranks - 1) / ranks;
  return part;
}

weights::LoadOptions load_options(const RecordOptions& options) {
  weights::LoadOptions load{
      .dtype = weights::parse_weight_dtype(options.dtype),
      .activation = weights::parse_activation_dtype(options.activation_dtype)};
  if (options.format != nullptr && options.format->name == "bf16") {
    load.dtype = WeightDType::kBFloat16;
  }
  if (options.format != nullptr && options.format->name == "fp32") {
    load.dtype = WeightDType::kFloat32;
  }
  // A GPU keeps 16-bit numbers as they are, and has no use for wider ones.
  if (options.kind == Device::Kind::kGpu && load.dtype != WeightDType::kFloat32) {
    load.dtype = WeightDType::kBFloat16;
  }
  return load;
}

/// Answers as the backend of the device would.
DryRunBackend::Stand stand_for(const RecordOptions& options,
                               std::shared_ptr<const backend::cpu::CpuBackend> cpu) {
  DryRunBackend::Stand stand;
  if (options.kind == Device::Kind::kGpu) {
    // 16-bit tensor cores; codes are widened on the way.
    stand.preferred_activation = [](const WeightSpec& spec) {
      const bool fp32 = spec.layout == backend::Layout::kDense && spec.dtype == DType::kF32;
      return fp32 ? ActType::kF32 : ActType::kBF16;
    };
  } else {
    stand.preferred_activation = [cpu](const WeightSpec& spec) {
      return cpu->preferred_activation(spec);
    };
  }
  if (options.format != nullptr && options.format->recoded) {
    stand.held_as = [format = options.format](const WeightSpec& spec) {
      return recoded_spec(*format, spec);
    };
  }
  return stand;
}

/// The real table where it serves as it is; else shapes, with the types that the files, the wanted
/// format or the configuration give.
std::shared_ptr<const checkpoint::TensorSource> tensors_for(const PlannedModel& model,
                                                            const RecordOptions& options) {
  const WeightFormat* format = options.format;
  if (model.tensors && format == nullptr && options.tensor_parallel == 1) return model.tensors;
  return std::make_shared<const ShapeSource>(
      model.name,
      [format, real = model.tensors, dtype = model.config.dtype](std::string_view name) {
        if (format != nullptr && (format->everywhere || !is_embedding_or_head(name))) {
          return format->stored;
        }
        if (format != nullptr) return DType::kBF16;
        const auto* stored = real ? real->find(name) : nullptr;
        return stored != nullptr ? stored->dtype : dtype;
      });
}

void set_window(StageProgram& stage, int64_t window) {
  if (window == 0) return;
  for (auto& group : stage.cache_groups) group.window = static_cast<int32_t>(window);
  for (auto& group : stage.program.cache_groups) group.window = static_cast<int32_t>(window);
  for (backend::Op& op : stage.program.ops) {
    if (op.kind == backend::OpKind::kAttention) op.attention.window = static_cast<int32_t>(window);
  }
}

std::vector<RankShare> ranks_of(const ModelConfig& config, const RecordOptions& options,
                                int32_t stage, int64_t first_layer, int64_t end_layer) {
  const int64_t tp = options.tensor_parallel;
  const int64_t heads = config.num_heads / tp;
  const bool replicated = config.num_kv_heads < tp;
  const int64_t kv_heads = replicated ? 1 : config.num_kv_heads / tp;
  const int64_t replicas = replicated ? tp / config.num_kv_heads : 1;
  std::vector<RankShare> ranks;
  for (int32_t i = 0; i < tp; ++i) {
    const int64_t first_kv = replicated ? i / replicas : i * kv_heads;
    ranks.push_back({.rank = stage * options.tensor_parallel + i,
                     .tp_rank = i,
                     .stage = stage,
                     .first_layer = first_layer,
                     .end_layer = end_layer,
                     .first_head = i * heads,
                     .end_head = (i + 1) * heads,
                     .first_kv_head = first_kv,
                     .end_kv_head = first_kv + kv_heads,
                     .kv_replicas = replicas,
                     .has_embedding = first_layer == 0,
                     .has_head = end_layer == config.num_layers});
  }
  return ranks;
}

}  // namespace

DType planned_kv_dtype(const PlannedModel& model, const RecordOptions& options) {
  const std::string& text = options.kv_cache_dtype;
  if (text == "bfloat16" || text == "bf16") return DType::kBF16;
  if (text == "float16" || text == "fp16" || text == "half") return DType::kF16;
  if (text == "float32" || text == "fp32") return DType::kF32;
  if (text != "auto")
    throw LoadError("--kv-cache-dtype", "", "auto, bfloat16, float16 or float32", text);
  const WeightDType dtype = load_options(options).dtype;
  const DType stored = options.format != nullptr ? options.format->stored : model.config.dtype;
  const bool follows_fp32 =
      dtype == WeightDType::kFloat32 || (dtype == WeightDType::kAuto && stored == DType::kF32);
  return follows_fp32 ? DType::kF32 : DType::kBF16;
}

std::string_view kv_dtype_name(DType dtype) {
  if (dtype == DType::kF32) return "float32";
  return dtype == DType::kF16 ? "float16" : "bfloat16";
}

std::vector<StageProgram> record_stages(const PlannedModel& model, const RecordOptions& options) {
  const ModelConfig& whole = model.config;
  const int64_t stages = options.pipeline_parallel;
  if (stages < 1 || stages > whole.num_layers) {
    throw LoadError("--pipeline-parallel-size", "",
                    fmt::format("1 to {}, the model's layers", whole.num_layers),
                    fmt::format("{}", stages));
  }
  const ModelConfig part = share_of(whole, options.tensor_parallel);
  std::shared_ptr<const backend::cpu::CpuBackend> cpu;
  if (options.kind == Device::Kind::kCpu) {
    cpu = std::make_shared<const backend::cpu::CpuBackend>(
        backend::cpu::CpuBackend::Options{.num_threads = 1, .cpus = {}});
  }
  DryRunBackend counter(stand_for(options, cpu));
  const auto tensors = tensors_for(model, options);
  const weights::WeightScope root(*tensors, counter, load_options(options));
  const auto loaded = models::load_model(part, root);
  const auto groups = loaded->cache_groups(planned_kv_dtype(model, options), options.block_tokens);

  std::vector<StageProgram> result;
  int64_t first = 0;
  for (int64_t s = 0; s < stages; ++s) {
    const int64_t count = whole.num_layers / stages + (s < whole.num_layers % stages ? 1 : 0);
    StageProgram stage;
    stage.cache_groups = groups;
    for (auto& group : stage.cache_groups) group.num_layers = static_cast<int32_t>(count);
    stage.program = models::record_stage(*loaded, {first, count, whole.hidden_size},
                                         {.max_tokens = options.max_tokens,
                                          .max_logits = options.max_logits,
                                          .cache_groups = stage.cache_groups});
    set_window(stage, model.window);
    stage.ranks = ranks_of(whole, options, static_cast<int32_t>(s), first, first + count);
    result.push_back(std::move(stage));
    first += count;
  }
  return result;
}

int64_t count_parameters(const PlannedModel& model) {
  const auto stages = record_stages({.name = model.name,
                                     .config = model.config,
                                     .tensors = nullptr,
                                     .quantized_as = {},
                                     .notes = {}},
                                    {.format = &find_weight_format("bf16")});
  int64_t sum = 0;
  for (const StageProgram& stage : stages) {
    for (const auto& weight : stage.program.weights) sum += weight->spec.in * weight->spec.out;
    std::set<int32_t> counted;
    for (const backend::Op& op : stage.program.ops) {
      // Rotary frequencies are computed, not stored.
      if (op.kind == backend::OpKind::kRope || op.vector < 0) continue;
      if (!counted.insert(op.vector).second) continue;
      sum += static_cast<int64_t>(stage.program.vectors[static_cast<size_t>(op.vector)].size());
    }
  }
  return sum;
}

}  // namespace quire::plan
