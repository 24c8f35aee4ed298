#include "quire/bench/model/loaded_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "quire/backend/dryrun/dryrun_backend.h"
#include "quire/checkpoint/checkpoint.h"
#include "quire/llm/plan_model.h"
#include "quire/models/program_recorder.h"
#include "quire/models/registry.h"
#include "quire/weights/weight_scope.h"

namespace quire::bench {
namespace {

using backend::Program;
using backend::cpu::CpuBackend;

CpuBackend::Options backend_options(const LoadedProgramOptions& options) {
  CpuBackend::Options cpu;
  cpu.cpus = options.llm.cpu_affinity;
  cpu.num_threads = options.llm.threads;
  if (cpu.num_threads == 0) cpu.num_threads = static_cast<int>(cpu.cpus.size());
  cpu.time_ops = options.time_ops;
  return cpu;
}

int64_t num_blocks(const LoadedProgramOptions& options) {
  const int64_t block = options.llm.block_size;
  return std::max<int64_t>(1, (options.kv_tokens + block - 1) / block);
}

/// The types and cache groups that the engine would choose, with this program's bounds.
llm::ModelPlan plan(const LoadedProgramOptions& options, const checkpoint::Checkpoint& checkpoint,
                    const CpuBackend& cpu) {
  llm::Options llm = options.llm;
  llm.max_num_batched_tokens = options.max_tokens;
  llm.max_num_seqs = 1;  // bounds nothing here
  llm.num_gpu_blocks_override = num_blocks(options);
  llm.max_model_len = llm::Options::kLongestThatFits;
  return llm::plan_model(llm, checkpoint, cpu);
}

Program record(const LoadedProgramOptions& options, const checkpoint::Checkpoint& checkpoint,
               const llm::ModelPlan& plan, backend::Backend& backend) {
  const weights::WeightScope root(*checkpoint.tensors, backend, plan.load,
                                  options.llm.on_load_progress);
  const auto model = models::load_model(checkpoint.config, root);
  return models::record_program(*model, {.max_tokens = options.max_tokens,
                                         .max_logits = options.max_logits,
                                         .cache_groups = plan.cache_groups});
}

}  // namespace

LoadedProgram::LoadedProgram(const LoadedProgramOptions& options)
    : block_tokens_(options.llm.block_size),
      backend_(std::make_unique<CpuBackend>(backend_options(options))) {
  const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(options.llm.model);
  const llm::ModelPlan planned = plan(options, checkpoint, *backend_);
  kv_ = std::make_unique<runner::KvStore>(runner::KvStore::Options{
      .groups = planned.cache_groups, .num_blocks = num_blocks(options), .ledger = nullptr});
  program_ = std::make_shared<const Program>(record(options, checkpoint, planned, *backend_));
  backend_->load(program_, kv_->slabs());
}

void LoadedProgram::commit_kv() {
  for (size_t i = 0; i < program_->cache_groups.size(); ++i) {
    const backend::KvSlab& slab = kv_->slabs()[i];
    const int64_t bytes = slab.num_blocks * program_->cache_groups[i].block_bytes();
    backend_->parallel([&](int worker, int num_workers) {
      const int64_t begin = bytes * worker / num_workers;
      const int64_t end = bytes * (worker + 1) / num_workers;
      std::memset(slab.data + begin, 0, static_cast<size_t>(end - begin));
    });
  }
}

Program count_program(const LoadedProgramOptions& options) {
  const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(options.llm.model);
  const CpuBackend cpu(backend_options(options));
  backend::dryrun::DryRunBackend counter(
      {.preferred_activation =
           [&cpu](const backend::WeightSpec& spec) { return cpu.preferred_activation(spec); },
       .unsupported = [&cpu](const Program& program,
                             const backend::Op& op) { return cpu.unsupported(program, op); }});
  LoadedProgramOptions quiet = options;
  quiet.llm.on_load_progress = {};
  return record(quiet, checkpoint, plan(options, checkpoint, cpu), counter);
}

}  // namespace quire::bench
