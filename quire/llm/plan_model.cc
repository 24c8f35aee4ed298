#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "quire/backend/dryrun/dryrun_backend.h"
#include "quire/base/error.h"
#include "quire/llm/available_memory.h"
#include "quire/llm/kv_sizing.h"
#include "quire/llm/plan_model.h"
#include "quire/llm/swap_sizing.h"
#include "quire/models/program_recorder.h"
#include "quire/models/registry.h"
#include "quire/runner/kv_store.h"
#include "quire/runner/sampler.h"

namespace quire::llm {
namespace {

constexpr int64_t kMinLogitsRows = 64;

/// --kv-cache-dtype; auto follows --dtype, which itself follows the checkpoint.
DType kv_dtype_of(std::string_view text, weights::WeightDType dtype, DType stored) {
  if (text == "bfloat16" || text == "bf16") return DType::kBF16;
  if (text == "float16" || text == "fp16" || text == "half") return DType::kF16;
  if (text == "float32" || text == "fp32") return DType::kF32;
  if (text != "auto")
    throw LoadError("--kv-cache-dtype", "", "auto, bfloat16, float16 or float32", text);
  const bool follows_fp32 = dtype == weights::WeightDType::kFloat32 ||
                            (dtype == weights::WeightDType::kAuto && stored == DType::kF32);
  return follows_fp32 ? DType::kF32 : DType::kBF16;
}

void check_counts(const Options& options) {
  const auto positive = [](std::string_view option, int64_t value) {
    if (value < 1 || value > std::numeric_limits<int32_t>::max()) {
      throw LoadError(option, "", "a positive number", fmt::format("{}", value));
    }
  };
  positive("--max-num-batched-tokens", options.max_num_batched_tokens);
  positive("--max-num-seqs", options.max_num_seqs);
  positive("--block-size", options.block_size);
  if (options.block_size % 16 != 0) {
    throw LoadError("--block-size", "", "a multiple of 16", fmt::format("{}", options.block_size));
  }
  constexpr double kMaxItlMs = 1e9;
  if (!(options.target_itl_ms >= 0 && options.target_itl_ms <= kMaxItlMs)) {
    throw LoadError("--target-itl", "", "milliseconds, 0 or more",
                    fmt::format("{}", options.target_itl_ms));
  }
  if (options.num_gpu_blocks_override) {
    positive("--num-gpu-blocks-override", *options.num_gpu_blocks_override);
  }
  if (options.kv_cache_memory_bytes && *options.kv_cache_memory_bytes < 1) {
    throw LoadError("--kv-cache-memory-bytes", "", "a positive number",
                    fmt::format("{}", *options.kv_cache_memory_bytes));
  }
}

sched::SchedulingPolicy policy_of(const std::string& name) {
  if (name == "fcfs") return sched::SchedulingPolicy::kFcfs;
  if (name == "priority") return sched::SchedulingPolicy::kPriority;
  throw LoadError("--scheduling-policy", "", "fcfs or priority", name);
}

sched::PreemptionMode preemption_mode_of(const std::string& name) {
  if (name == "auto") return sched::PreemptionMode::kAuto;
  if (name == "swap") return sched::PreemptionMode::kSwap;
  if (name == "recompute") return sched::PreemptionMode::kRecompute;
  throw LoadError("--preemption-mode", "", "auto, swap or recompute", name);
}

sched::SchedulerOptions scheduler_options(const Options& options, const KvSize& kv,
                                          int64_t max_logits) {
  sched::SchedulerOptions scheduler;
  scheduler.max_num_batched_tokens = static_cast<int32_t>(options.max_num_batched_tokens);
  scheduler.max_num_seqs = options.max_num_seqs;
  scheduler.max_model_len = static_cast<int32_t>(kv.max_model_len);
  scheduler.max_logits_rows = static_cast<int32_t>(max_logits);
  scheduler.enable_chunked_prefill = options.enable_chunked_prefill;
  scheduler.enable_prefix_caching = options.enable_prefix_caching;
  // Of this process alone, so that nobody can make up prompts whose hashes collide.
  std::random_device device;
  scheduler.cache_seed = (uint64_t{device()} << 32) | device();
  scheduler.policy = policy_of(options.scheduling_policy);
  scheduler.long_prefill_token_threshold = options.long_prefill_token_threshold;
  scheduler.block_tokens = options.block_size;
  scheduler.num_blocks = static_cast<int32_t>(kv.num_blocks);
  scheduler.preemption_mode = preemption_mode_of(options.preemption_mode);
  sched::check_options(scheduler);
  return scheduler;
}

void plan_swap(const Options& options, const backend::Program& program, int num_workers,
               ModelPlan& plan) {
  const int64_t block_bytes = runner::KvStore::bytes_for(plan.cache_groups, 1);
  SwapSize swap = size_swap(options, {.block_bytes = block_bytes,
                                      .other_bytes = plan.memory.total(),
                                      .available_bytes = plan.memory.available});
  if (!swap.notice.empty()) plan.notices.push_back(std::move(swap.notice));
  plan.memory.num_swap_blocks = swap.num_blocks;
  plan.memory.swap_space = swap.num_blocks * block_bytes;
  plan.memory.swap_folder = options.kv_cache_dir.empty() ? options.swap_dir : options.kv_cache_dir;
  plan.scheduler.num_swap_blocks = static_cast<int32_t>(swap.num_blocks);
  plan.scheduler.swap_block_ns = swap_block_ns(block_bytes, !plan.memory.swap_folder.empty());
  plan.scheduler.recompute_token_ns = recompute_token_ns(program, num_workers);
  plan.scheduler.prompt_work.attended_share = attended_share(program);
}

}  // namespace

ModelPlan plan_model(const Options& options, const checkpoint::Checkpoint& checkpoint,
                     const backend::cpu::CpuBackend& cpu, int64_t tokenizer_bytes) {
  check_counts(options);
  ModelPlan plan;
  plan.load = {.dtype = weights::parse_weight_dtype(options.dtype),
               .activation = weights::parse_activation_dtype(options.activation_dtype)};
  plan.kv_dtype = kv_dtype_of(options.kv_cache_dtype, plan.load.dtype, checkpoint.config.dtype);
  plan.max_logits = std::max<int64_t>(kMinLogitsRows, options.max_num_seqs);

  backend::dryrun::DryRunBackend counter(
      {.preferred_activation =
           [&cpu](const backend::WeightSpec& spec) { return cpu.preferred_activation(spec); },
       .unsupported = [&cpu](const backend::Program& program,
                             const backend::Op& op) { return cpu.unsupported(program, op); }});
  const weights::WeightScope root(*checkpoint.tensors, counter, plan.load);
  const auto model = models::load_model(checkpoint.config, root);
  plan.cache_groups = model->cache_groups(plan.kv_dtype, options.block_size);
  const backend::Program program =
      models::record_program(*model, {.max_tokens = options.max_num_batched_tokens,
                                      .max_logits = plan.max_logits,
                                      .cache_groups = plan.cache_groups});
  plan.vocab_size = program.vocab_size;

  MemoryReport& memory = plan.memory;
  memory.weights = program.weight_bytes();
  memory.arena = program.arena_bytes + cpu.scratch_bytes(program);
  memory.worker_scratch = cpu.worker_scratch_bytes();
  memory.tokenizer = tokenizer_bytes;
  memory.other = runner::Sampler::scratch_bytes(program.vocab_size, cpu.num_workers());
  memory.available = available_memory();
  const KvSize kv =
      size_kv(options, {.block_bytes = runner::KvStore::bytes_for(plan.cache_groups, 1),
                        .block_tokens = options.block_size,
                        .model_max_len = checkpoint.config.max_position,
                        .fixed_bytes = memory.total(),
                        .available_bytes = memory.available});
  memory.kv_cache = runner::KvStore::bytes_for(plan.cache_groups, kv.num_blocks);
  memory.num_blocks = kv.num_blocks;
  memory.block_tokens = options.block_size;
  memory.max_model_len = kv.max_model_len;
  memory.max_num_seqs = options.max_num_seqs;
  plan.scheduler = scheduler_options(options, kv, plan.max_logits);
  plan_swap(options, program, cpu.num_workers(), plan);
  return plan;
}

}  // namespace quire::llm
