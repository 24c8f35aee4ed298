// ModelRunner: binds each BatchPlan to the backend's loaded program, then samples from its logits.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/runner/kv_store.h"
#include "quire/runner/runner.h"
#include "quire/runner/sampler.h"
#include "quire/runner/swap_space.h"

namespace quire::runner {

/// Allocates nothing in a step once warm (unless rows start or ask for log-probabilities).
class ModelRunner final : public Runner {
 public:
  struct Options {
    int64_t vocab_size = 0;
    int32_t max_num_seqs = 0;
    SwapSpace* swap = nullptr;  // where plans swap; outlives the runner
    /// For tests: every block that a step begins to write is filled with NaN first, so that a read
    /// of what an earlier owner left shows. Null: none is.
    KvStore* poisoned = nullptr;
    int32_t block_tokens = 16;  // of `poisoned`
  };
  /// `backend` has loaded its program and outlives the runner.
  ModelRunner(Options options, backend::Backend& backend);

  void launch(const sched::BatchPlan& plan) override;
  StepOutput& finish() override;

 private:
  void copy_blocks(const sched::BatchPlan& plan);
  void poison_begun_blocks(const sched::BatchPlan& plan);
  void bind(const sched::BatchPlan& plan);
  void read_logits(int worker, int num_workers);

  Options options_;
  backend::Backend& backend_;
  Sampler sampler_;
  const sched::BatchPlan* plan_ = nullptr;  // launched, not finished
  StepOutput output_;
  std::vector<int32_t> chosen_;       // by use: the sampled token, or the prompt's
  std::vector<int32_t> query_start_;  // [rows + 1]
  std::vector<int32_t> context_len_;  // [rows]
  std::vector<backend::GroupMeta> groups_;
  std::vector<backend::BlockCopy> copies_;
};

}  // namespace quire::runner
