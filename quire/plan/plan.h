// Plan: what a model would take on a device, rank by rank, before any of it is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "quire/plan/ledger.h"
#include "quire/plan/textbook.h"

namespace quire::plan {

/// What the rule that sizes the KV pool is told.
struct PoolDemand {
  int64_t block_bytes = 0;
  int64_t block_tokens = 0;
  int64_t length = 0;        // tokens a sequence may have
  bool may_shorten = false;  // `length` is the model's own limit, and less will do
  int64_t fixed_bytes = 0;   // everything but the pool
  int64_t memory_bytes = 0;  // what there is
};
struct PoolSize {
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;
};

struct PlanOptions {
  RecordOptions record = {};
  Device device = {};
  int64_t memory_bytes = 0;  // of one rank's device; 0 = not known
  double utilization = 0.9;  // the share of it to use
  int32_t max_num_seqs = 128;
  /// Unset: the model's own. Zero or less: the longest that fits.
  std::optional<int64_t> max_model_len = {};
  bool enforce_eager = false;
  /// The engine's rule; throws LoadError when the pool would not hold one sequence. Required.
  std::function<PoolSize(const PoolDemand&)> size_pool = {};
};

struct Plan {
  PlannedModel model;
  PlanOptions options;
  std::string weight_format;  // "as stored", or the wanted format's name
  DType kv_dtype = DType::kBF16;
  int64_t parameters = 0;
  std::vector<StageProgram> stages;
  std::vector<RankLedger> ranks;  // by rank
  std::vector<Comparison> comparisons;

  bool fits = false;
  std::string problem;  // why it does not
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;  // when it does not fit: what was asked for

  int64_t budget_bytes() const;  // utilization x memory
  int64_t block_tokens() const { return options.record.block_tokens; }
  /// The rank that takes most, by what is not the pool.
  const RankLedger& fullest() const;
  int64_t pool_bytes(const RankLedger& rank) const { return num_blocks * rank.kv_block_bytes; }
  int64_t total_bytes(const RankLedger& rank) const {
    return rank.fixed_bytes() + pool_bytes(rank);
  }
  /// Blocks and bytes (of the fullest rank) a sequence of `tokens` holds.
  int64_t sequence_blocks(int64_t tokens) const;
  int64_t sequence_bytes(int64_t tokens) const;
  /// Sequences of `tokens` the pool holds at once.
  double concurrency(int64_t tokens) const;
};

/// Records, counts and sizes. A model that does not fit is a plan that says so; impossible options
/// are LoadErrors.
Plan make_plan(PlannedModel model, PlanOptions options);

}  // namespace quire::plan
