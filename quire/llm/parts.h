// Parts: what an LLM is wired from: text, limits and a runner; opened from files, or made by a
// test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "quire/base/memory_ledger.h"
#include "quire/checkpoint/model_config.h"
#include "quire/llm/memory_report.h"
#include "quire/llm/options.h"
#include "quire/runner/kept_tier.h"
#include "quire/runner/runner.h"
#include "quire/sched/scheduler_options.h"
#include "quire/text/chat_template.h"
#include "quire/text/tokenizer.h"

namespace quire::llm {

struct Parts {
  std::shared_ptr<MemoryLedger> ledger = std::make_shared<MemoryLedger>();  // outlives the rest
  LedgerEntry tokenizer_bytes;
  std::unique_ptr<text::Tokenizer> tokenizer;         // null: the model works on ids alone
  std::unique_ptr<text::ChatTemplate> chat_template;  // null when there is none
  checkpoint::ModelConfig config;
  checkpoint::GenerationDefaults generation;
  std::unique_ptr<runner::Runner> runner;
  std::unique_ptr<runner::KeptTier> kept_tier;        // of the runner's swap space; may be null
  std::function<void(int32_t block)> on_block_freed;  // for tests; may be empty
  sched::SchedulerOptions scheduler;
  int64_t vocab_size = 0;  // the logits' width
  MemoryReport memory;
  std::string backend_name;
};

/// Opens a model: reads its files, counts its program, sizes the KV cache, then packs the weights
/// and loads the backend. Throws LoadError.
Parts open_parts(const Options& options);

}  // namespace quire::llm
