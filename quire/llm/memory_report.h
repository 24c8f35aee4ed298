// MemoryReport: where an engine's bytes go, counted from its own program before they are taken.
#pragma once

#include <cstdint>
#include <string>

namespace quire::llm {

struct MemoryReport {
  int64_t weights = 0;         // packed weights and vectors
  int64_t packed_copies = 0;   // weights held a second time in another layout
  int64_t kv_cache = 0;        // reserved; committed as it is used
  int64_t arena = 0;           // activations and scratch of one step
  int64_t worker_scratch = 0;  // what the compute threads keep to themselves
  int64_t tokenizer = 0;
  int64_t other = 0;       // the sampler's buffers
  int64_t swap_space = 0;  // not in the total: taken only when the KV cache is full
  int64_t available = 0;   // what the system had to give at start (0: unknown)

  int64_t num_blocks = 0;
  int64_t block_tokens = 0;
  int64_t num_swap_blocks = 0;
  std::string swap_folder = {};  // of the swap space's file; empty: memory
  int64_t max_model_len = 0;
  int64_t max_num_seqs = 0;

  int64_t total() const {
    return weights + packed_copies + kv_cache + arena + worker_scratch + tokenizer + other;
  }
};

/// "98.4 MB", "1.50 GiB": three digits, binary units.
std::string format_bytes(int64_t bytes);
/// A table of the parts and their sum, one a line, then what the pool holds.
std::string format_report(const MemoryReport& report);

}  // namespace quire::llm
