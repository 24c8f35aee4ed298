#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quire/base/background_commit.h"
#include "quire/base/check.h"
#include "quire/base/cpu_count.h"
#include "quire/base/error.h"
#include "quire/base/log.h"
#include "quire/base/memory_ledger.h"
#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/tokenizer_json.h"
#include "quire/llm/llm.h"
#include "quire/llm/numbers_key.h"
#include "quire/llm/parts.h"
#include "quire/llm/plan_model.h"
#include "quire/llm/profile_steps.h"
#include "quire/models/program_recorder.h"
#include "quire/models/registry.h"
#include "quire/runner/kept_tier.h"
#include "quire/runner/kv_store.h"
#include "quire/runner/model_runner.h"
#include "quire/runner/swap_space.h"

namespace quire::llm {
namespace {

using backend::cpu::CpuBackend;

/// Throws LoadError when a processor of the list is not this process's to use, or the list is too
/// short.
void check_affinity(const Options& options) {
  const std::vector<int> allowed = allowed_cpus();
  for (const int cpu : options.cpu_affinity) {
    if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) {
      throw LoadError("--cpu-affinity", "",
                      fmt::format("processors out of {}", fmt::join(allowed, ",")),
                      std::to_string(cpu));
    }
  }
  if (!options.cpu_affinity.empty() &&
      options.threads > static_cast<int32_t>(options.cpu_affinity.size())) {
    throw LoadError("--cpu-affinity", "",
                    fmt::format("a processor for each of {} threads", options.threads),
                    std::to_string(options.cpu_affinity.size()));
  }
}

CpuBackend::Options cpu_options(const Options& options, MemoryLedger* ledger) {
  check_affinity(options);
  CpuBackend::Options cpu;
  cpu.num_threads = options.threads;
  cpu.cpus = options.cpu_affinity;
  if (cpu.num_threads == 0) cpu.num_threads = static_cast<int>(cpu.cpus.size());
  cpu.ledger = ledger;
  cpu.profile_steps = static_cast<bool>(options.on_step_record);
  return cpu;
}

int64_t vector_bytes(const backend::Program& program) {
  int64_t bytes = 0;
  for (const auto& vector : program.vectors) bytes += 4 * static_cast<int64_t>(vector.size());
  return bytes;
}

/// QUIRE_POISON_KV in the environment, for tests: the KV cache begins as NaN, and a block becomes
/// it again when it has come to hold nothing and when a sequence begins to fill it.
bool poison_wanted() {
  const char* value = std::getenv("QUIRE_POISON_KV");
  return value != nullptr && *value != '\0' && *value != '0';
}

/// The runner of a loaded model, with everything it runs on. Members die in reverse order.
class LoadedRunner final : public runner::Runner {
 public:
  LoadedRunner(const Options& options, const checkpoint::Checkpoint& checkpoint,
               const ModelPlan& plan, std::shared_ptr<MemoryLedger> ledger,
               std::unique_ptr<runner::SwapSpace> swap, std::unique_ptr<CpuBackend> cpu)
      : ledger_(std::move(ledger)),
        on_step_record_(options.on_step_record),
        swap_(std::move(swap)),
        kv_({.groups = plan.cache_groups,
             .num_blocks = plan.memory.num_blocks,
             .swap = swap_.get(),
             .ledger = ledger_.get()}),
        backend_(std::move(cpu)) {
    if (poison_wanted() || options.poison_kv_cache) kv_.poison();
    load_program(options, checkpoint, plan);
    runner_ = std::make_unique<runner::ModelRunner>(
        runner::ModelRunner::Options{.vocab_size = plan.vocab_size,
                                     .max_num_seqs = plan.scheduler.max_num_seqs,
                                     .swap = swap_.get(),
                                     .poisoned = poison_wanted() ? &kv_ : nullptr,
                                     .block_tokens = plan.scheduler.block_tokens},
        *backend_);
    sampler_ = LedgerEntry(ledger_.get(), MemoryTag::kOther, plan.memory.other);
    if (options.commit_kv_cache) commit_kv_cache(plan);
  }

  runner::KvStore& kv() { return kv_; }

  void launch(const sched::BatchPlan& plan) override {
    plan_ = &plan;
    launch_ns_ = backend::cpu::steady_ns();
    if (commit_ != nullptr) commit_->pause();
    runner_->launch(plan);
  }
  runner::StepOutput& finish() override {
    const int64_t begin_ns = backend::cpu::steady_ns();
    runner::StepOutput& output = runner_->finish();
    if (on_step_record_) {
      on_step_record_({.plan = *plan_,
                       .program = *program_,
                       .phases = backend_->phases(),
                       .forward = backend_->last_step(),
                       .launch_ns = launch_ns_,
                       .sample = {begin_ns, backend::cpu::steady_ns()}});
    }
    return output;
  }

 private:
  void load_program(const Options& options, const checkpoint::Checkpoint& checkpoint,
                    const ModelPlan& plan) {
    const weights::WeightScope root(*checkpoint.tensors, *backend_, plan.load,
                                    options.on_load_progress);
    const auto model = models::load_model(checkpoint.config, root);
    auto program = std::make_shared<const backend::Program>(
        models::record_program(*model, {.max_tokens = options.max_num_batched_tokens,
                                        .max_logits = plan.max_logits,
                                        .cache_groups = plan.cache_groups}));
    vectors_ = LedgerEntry(ledger_.get(), MemoryTag::kWeights, vector_bytes(*program));
    backend_->load(program, kv_.slabs());
    program_ = std::move(program);
    check_plan(plan);
  }

  /// Layer by layer in step: the first blocks of all layers are used first.
  void commit_kv_cache(const ModelPlan& plan) {
    std::vector<std::span<std::byte>> layers;
    for (size_t g = 0; g < plan.cache_groups.size(); ++g) {
      const backend::KvSlab& slab = kv_.slabs()[g];
      for (int32_t layer = 0; layer < plan.cache_groups[g].num_layers; ++layer) {
        layers.emplace_back(slab.data + layer * slab.layer_stride,
                            static_cast<size_t>(slab.layer_stride));
      }
    }
    commit_ = std::make_unique<BackgroundCommit>(std::move(layers));
  }

  /// The plan was counted from the same program: what differs now is a bug.
  void check_plan(const ModelPlan& plan) const {
    QUIRE_CHECK(program_->weight_bytes() == plan.memory.weights);
    QUIRE_CHECK(ledger_->current(MemoryTag::kWeights) +
                    ledger_->current(MemoryTag::kPackedCopies) ==
                plan.memory.weights + plan.memory.packed_copies);
    QUIRE_CHECK(ledger_->current(MemoryTag::kKvCache) == plan.memory.kv_cache);
    QUIRE_CHECK(ledger_->current(MemoryTag::kSwapSpace) == plan.memory.swap_space);
    QUIRE_CHECK(ledger_->current(MemoryTag::kArena) == plan.memory.arena);
    QUIRE_CHECK(ledger_->current(MemoryTag::kWorkerScratch) == plan.memory.worker_scratch);
  }

  std::shared_ptr<MemoryLedger> ledger_;
  const std::function<void(const StepRecord&)> on_step_record_;
  std::unique_ptr<runner::SwapSpace> swap_;
  runner::KvStore kv_;
  std::unique_ptr<BackgroundCommit> commit_;
  std::unique_ptr<CpuBackend> backend_;
  std::shared_ptr<const backend::Program> program_;
  std::unique_ptr<runner::ModelRunner> runner_;
  LedgerEntry vectors_;  // norms, biases, rotary frequencies
  LedgerEntry sampler_;

  const sched::BatchPlan* plan_ = nullptr;  // launched
  int64_t launch_ns_ = 0;
};

std::string read_template(const checkpoint::Checkpoint& checkpoint, const Options& options) {
  return options.chat_template.empty() ? checkpoint.chat_template : options.chat_template;
}

/// Puts the tokenizer and template of options.tokenizer in place of the model's.
void replace_tokenizer(checkpoint::Checkpoint& checkpoint, const Options& options) {
  if (options.tokenizer.empty()) return;
  checkpoint::HfTokenizerFiles files;
  if (std::filesystem::exists(std::filesystem::path(options.tokenizer) / "tokenizer.json")) {
    files = checkpoint::read_hf_tokenizer(options.tokenizer);
  } else {
    checkpoint::Checkpoint other = checkpoint::open_checkpoint(options.tokenizer);
    files = {.spec = std::move(other.tokenizer), .chat_template = std::move(other.chat_template)};
  }
  if (files.spec.vocab.empty()) {
    throw LoadError("--tokenizer", "", "a folder or file that holds a tokenizer",
                    options.tokenizer);
  }
  checkpoint.tokenizer = std::move(files.spec);
  if (!files.chat_template.empty()) checkpoint.chat_template = std::move(files.chat_template);
}

void check_generation_config(const Options& options) {
  if (options.generation_config == "auto" || options.generation_config == "vllm") return;
  throw LoadError("--generation-config", "", "auto or vllm", options.generation_config);
}

std::unique_ptr<runner::SwapSpace> make_swap(const Options& options, const ModelPlan& plan,
                                             MemoryLedger* ledger) {
  const std::string& kept = options.kv_cache_dir;
  if (!kept.empty()) runner::KeptTier::make_folder(kept);
  return std::make_unique<runner::SwapSpace>(
      runner::SwapSpace::Options{.groups = plan.cache_groups,
                                 .num_blocks = plan.memory.num_swap_blocks,
                                 .folder = options.swap_dir,
                                 .file = kept.empty() ? "" : runner::KeptTier::blocks_file(kept),
                                 .ledger = ledger});
}

std::unique_ptr<runner::KeptTier> open_kept_tier(const Options& options,
                                                 const checkpoint::Checkpoint& checkpoint,
                                                 const ModelPlan& plan,
                                                 const runner::SwapSpace& swap) {
  auto kept = std::make_unique<runner::KeptTier>(
      runner::KeptTier::Options{.folder = options.kv_cache_dir,
                                .key = numbers_key(options, checkpoint, plan),
                                .block_tokens = plan.scheduler.block_tokens},
      swap);
  if (kept->num_restored() > 0) {
    log_info("{} KV blocks of an earlier run are found in {}", kept->num_restored(),
             options.kv_cache_dir);
  }
  return kept;
}

}  // namespace

Parts open_parts(const Options& options) {
  check_generation_config(options);
  checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(options.model);
  replace_tokenizer(checkpoint, options);
  Parts parts;
  if (options.ledger != nullptr) parts.ledger = options.ledger;
  auto cpu = std::make_unique<CpuBackend>(cpu_options(options, parts.ledger.get()));
  parts.backend_name =
      fmt::format("cpu/{}", backend::cpu::level_name(backend::cpu::chosen_level()));

  // The cheap parts first: a bad template or tokenizer need not wait for the weights.
  const std::string chat_template = read_template(checkpoint, options);
  if (!chat_template.empty()) {
    parts.chat_template = std::make_unique<text::ChatTemplate>(
        chat_template, options.chat_template.empty() ? checkpoint.source_path : "--chat-template");
  }
  if (!checkpoint.tokenizer.vocab.empty()) {
    parts.tokenizer = std::make_unique<text::Tokenizer>(std::move(checkpoint.tokenizer));
    parts.tokenizer_bytes =
        LedgerEntry(parts.ledger.get(), MemoryTag::kTokenizer, parts.tokenizer->heap_size());
  }
  const ModelPlan plan = plan_model(options, checkpoint, *cpu, parts.tokenizer_bytes.bytes());
  for (const std::string& notice : plan.notices) log_warning("{}", notice);
  auto swap = make_swap(options, plan, parts.ledger.get());
  if (options.generation_config == "auto") parts.generation = checkpoint.generation;
  parts.scheduler = plan.scheduler;
  if (!options.kv_cache_dir.empty()) {
    parts.kept_tier = open_kept_tier(options, checkpoint, plan, *swap);
    // Hashes of this run must be those of the one before.
    parts.scheduler.cache_seed = parts.kept_tier->cache_seed().value_or(parts.scheduler.cache_seed);
  }
  parts.vocab_size = plan.vocab_size;
  parts.memory = plan.memory;
  auto loaded = std::make_unique<LoadedRunner>(options, checkpoint, plan, parts.ledger,
                                               std::move(swap), std::move(cpu));
  if (poison_wanted()) {
    parts.on_block_freed = [&kv = loaded->kv()](int32_t block) {
      for (size_t group = 0; group < kv.slabs().size(); ++group) kv.poison(group, block);
    };
  }
  parts.runner = std::move(loaded);
  parts.config = std::move(checkpoint.config);
  return parts;
}

MemoryReport count_memory(const Options& options) {
  checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(options.model);
  replace_tokenizer(checkpoint, options);
  int64_t tokenizer_bytes = 0;
  if (!checkpoint.tokenizer.vocab.empty()) {
    tokenizer_bytes = text::Tokenizer(std::move(checkpoint.tokenizer)).heap_size();
  }
  const CpuBackend cpu(cpu_options(options, nullptr));
  return plan_model(options, checkpoint, cpu, tokenizer_bytes).memory;
}

}  // namespace quire::llm
