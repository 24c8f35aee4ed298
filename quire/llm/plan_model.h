// ModelPlan: a model counted before it is loaded: its types, its program's bytes and its KV pool.
#pragma once

#include <string>
#include <vector>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/program.h"
#include "quire/checkpoint/checkpoint.h"
#include "quire/llm/memory_report.h"
#include "quire/llm/options.h"
#include "quire/sched/scheduler_options.h"
#include "quire/weights/load_options.h"

namespace quire::llm {

struct ModelPlan {
  weights::LoadOptions load;
  DType kv_dtype = DType::kBF16;
  std::vector<backend::CacheGroupSpec> cache_groups;
  int64_t max_logits = 0;
  int64_t vocab_size = 0;
  sched::SchedulerOptions scheduler;
  MemoryReport memory;
  std::vector<std::string> notices;  // what was chosen otherwise than one may expect
};

/// Records the program against a backend that only counts and answers as `cpu` would, then sizes
/// the KV pool by what is left. `tokenizer_bytes`: what the tokenizer takes, if there is one. Reads
/// no weights. Throws LoadError.
ModelPlan plan_model(const Options& options, const checkpoint::Checkpoint& checkpoint,
                     const backend::cpu::CpuBackend& cpu, int64_t tokenizer_bytes = 0);

}  // namespace quire::llm
