// verify_memory: loads a model, runs the largest batch that its options allow, and sets what was
// counted before against what was taken.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "quire/base/process_memory.h"
#include "quire/llm/memory_report.h"
#include "quire/llm/options.h"

namespace quire::llm {

/// One number of the plan beside what the ledger or the system has.
struct VerifiedLine {
  std::string name;
  int64_t predicted = 0;
  int64_t measured = 0;
  int64_t tolerance = 0;  // bytes either way; 0 = exact

  int64_t difference() const { return measured - predicted; }
  bool ok() const;
};

/// What is to be held against the engine: its parts, and the program around them.
struct Prediction {
  MemoryReport plan;                   // num_blocks is what the engine is opened with
  int64_t process_bytes = 0;           // resident before anything is loaded; 0: as it is
  bool tokenizer_is_estimate = false;  // then it need not be exact
};

struct Verification {
  MemoryReport plan;
  int64_t process_bytes = 0;  // predicted, or what it was
  ProcessMemory before;       // the program without a model
  ProcessMemory after;
  std::vector<VerifiedLine> lines;  // by tag, then what is resident in all
  int64_t num_steps = 0;            // of the batch
  int64_t most_tokens = 0;          // in one step
  int64_t most_rows = 0;

  bool ok() const;
};

/// What a plan may be off by in all: the allocator's own, pages that are not full, what libraries
/// keep. 2 % of it, at least 32 MiB.
int64_t resident_tolerance(int64_t predicted);

/// Counts, opens, fills the KV cache, and runs steps of max_num_batched_tokens tokens and of
/// max_num_seqs rows, also with every logits row in use. Resident is predicted as what the process
/// has before, plus the plan: so call it before anything else is loaded. Throws LoadError.
Verification verify_memory(const Options& options);
/// The same for what somebody else counted.
Verification verify_memory(const Options& options, const Prediction& prediction);

/// A table: predicted, measured, difference, and whether it holds.
std::string format_verification(const Verification& verification);

}  // namespace quire::llm
