// Ledger: where the bytes of one rank go, counted from its program, with what can only be estimated
// marked as such.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "quire/plan/rank_program.h"

namespace quire::plan {

struct LedgerLine {
  enum class Part : uint8_t { kWeights, kArena, kScratch, kOther };
  Part part = Part::kOther;
  std::string name;    // "down_proj"
  std::string format;  // "int4 group 32 with minimum"; empty where there is none
  int64_t count = 0;   // tensors
  int64_t parameters = 0;
  int64_t bytes = 0;          // all of it
  int64_t scale_bytes = 0;    // of `bytes`: scales and minima of real outputs
  int64_t padding_bytes = 0;  // of `bytes`: what fills the last panel
  bool estimate = false;
  std::string note;  // of an estimate: where it is from
};

/// What the arena holds when it is fullest.
struct ArenaPeak {
  std::string operation;
  int64_t live_bytes = 0;  // of tensors alive then; the arena has it and what does not fit together
  int64_t sum_bytes = 0;   // of all tensors, were none's storage given out again
  int64_t num_tensors = 0;
  std::vector<std::pair<std::string, int64_t>> live;  // the largest first
};

struct RankLedger {
  RankShare share;
  std::vector<LedgerLine> lines;
  ArenaPeak arena_peak;
  int64_t logits_bytes = 0;    // within the arena
  int64_t kv_block_bytes = 0;  // a block, all layers of the rank
  int64_t kv_token_bytes = 0;  // a token's share of it

  int64_t bytes(LedgerLine::Part part) const;
  /// Everything but the KV cache.
  int64_t fixed_bytes() const;
  /// Of it, what is counted and not estimated.
  int64_t exact_bytes() const;
};

struct LedgerOptions {
  Device::Kind kind = Device::Kind::kCpu;
  int32_t workers = 1;
  int32_t tensor_parallel = 1;
  int32_t pipeline_parallel = 1;
  bool enforce_eager = false;  // no CUDA graphs
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t max_tokens = 2048;
  std::string device_name = {};
};

/// One rank's ledger. All tensor-parallel ranks of a stage take the same, but rank 0 alone samples.
RankLedger count_ledger(const StageProgram& stage, const RankShare& share,
                        const LedgerOptions& options);

/// Blocks that a sequence of `tokens` holds: all of them, or what a window and a block being filled
/// need.
int64_t blocks_for(int64_t tokens, int64_t block_tokens, int64_t window);

}  // namespace quire::plan
