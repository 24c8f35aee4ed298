// Options: what a model is opened with, by vLLM's names; the command line fills it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quire/base/memory_ledger.h"
#include "quire/engine/engine.h"

namespace quire::llm {

struct StepRecord;

struct Options {
  /// A GGUF file or an HF folder.
  std::string model = {};
  /// A file or folder to take tokenizer and chat template from; empty: the model's.
  std::string tokenizer = {};
  std::string dtype = "auto";             // auto|half|float16|bfloat16|float|float32
  std::string activation_dtype = "auto";  // auto|fp32|bf16|int8
  std::string kv_cache_dtype = "auto";    // auto|bfloat16|float16|float32
  /// Jinja source that replaces the model's chat template; empty: the model's.
  std::string chat_template = {};
  /// "auto": sampling defaults from the model's generation_config.json; "vllm": neutral ones.
  std::string generation_config = "auto";

  /// Unset: the model's own. kLongestThatFits: as much of it as the KV cache holds.
  std::optional<int64_t> max_model_len = {};
  static constexpr int64_t kLongestThatFits = -1;
  int32_t block_size = 16;              // tokens; a multiple of 16
  double gpu_memory_utilization = 0.9;  // on a CPU: the share of available memory to use at most
  std::optional<int64_t> kv_cache_memory_bytes = {};
  std::optional<int64_t> num_gpu_blocks_override = {};
  /// Touch the KV cache's memory in the background once the model is loaded, so that no step waits
  /// for fresh pages; else memory is taken as it is used.
  bool commit_kv_cache = false;

  int64_t max_num_batched_tokens = 2048;
  int32_t max_num_seqs = 128;
  bool enable_chunked_prefill = true;
  bool enable_prefix_caching = true;         // share the KV blocks of equal prefixes
  std::string scheduling_policy = "fcfs";    // fcfs|priority
  int32_t long_prefill_token_threshold = 0;  // tokens of one prompt in a step; 0 = all that fit

  /// Bytes that blocks out of the KV pool may take: those of preempted sequences, and cached ones
  /// that the pool had no more room for. Taken as they are needed. Unset: kDefaultSwapBytes, or
  /// what available memory leaves beside the rest; 0: none.
  std::optional<int64_t> swap_space_bytes = {};
  std::string swap_dir = {};             // a folder for a file instead of memory
  std::string preemption_mode = "auto";  // auto|swap|recompute
  /// A folder to keep the swap space's cached blocks in between runs; empty: they are lost.
  std::string kv_cache_dir = {};
  /// While streams run, steps are kept below so many milliseconds by giving them fewer tokens; 0:
  /// max_num_batched_tokens alone limits them.
  double target_itl_ms = 0;

  int32_t threads = 0;  // compute workers; 0 = one per physical core, or per entry of cpu_affinity
  std::vector<int> cpu_affinity =
      {};  // worker i runs on this processor; empty: placed by the system
  int32_t max_logprobs = 20;
  int64_t max_waiting_requests = 1024;
  int64_t max_waiting_prompt_tokens = 4 << 20;

  /// Called on the engine thread after each step, for histograms. May be empty.
  std::function<void(const engine::StepStats&)> on_step = {};
  /// Called while weights are packed: bytes done of bytes in all. May be empty.
  std::function<void(int64_t done, int64_t total)> on_load_progress = {};
  /// Called on the engine thread after each step with where its time went (profile_steps.h); the
  /// backend then reads the clock around every operation. May be empty.
  std::function<void(const StepRecord&)> on_step_record = {};

  /// Writes NaN to all of the KV cache before the first step, so that every page of it is taken and
  /// a read of what was never written shows.
  bool poison_kv_cache = false;
  /// Where memory is counted; null: a ledger of the engine's own.
  std::shared_ptr<MemoryLedger> ledger = {};
};

}  // namespace quire::llm
