// FakeModel: a two-layer "transformer" of hashes that reads its context back through the block
// tables, so that one wrong, stale or missing KV slot changes every later token.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quire/kv/block_pool.h"
#include "quire/sched/batch_plan.h"
#include "quire/sched/request.h"

namespace quire::sched::testing {

/// What a model computes, of one sequence alone and without a cache: layer 1 folds the tokens up to
/// a position into its hidden value, layer 2 folds the hidden values into its logits.
struct FakeLogits {
  uint64_t hidden = 0;
  uint64_t logits = 0;

  void feed(int32_t token);
};

inline constexpr int32_t kFakeVocab = 101;

/// The token sampled from `logits` for the token at `position`.
int32_t fake_sample(uint64_t logits, const SamplingSpec& sampling, int32_t choice,
                    int32_t position);

/// The whole output of one choice of `request`, computed alone; it ends with a stop token or at
/// `token_limit` tokens, prompt included.
std::vector<int32_t> output_alone(const Request& request, int32_t choice, int32_t token_limit);

/// Plays runner, sampler and the engine's stop check, from what the plans say and nothing else. As
/// a real one may, it changes rows when a plan is launched, and does the rest of it as late as when
/// it is finished.
class FakeModel {
 public:
  struct Options {
    int32_t num_blocks = 0;
    int32_t block_tokens = 16;
    int32_t max_num_seqs = 0;
    int32_t num_swap_blocks = 0;
  };
  struct PromptLogprob {
    SequenceId sequence;
    int32_t position = 0;
    int32_t target = 0;
    uint64_t logits = 0;
  };

  explicit FakeModel(const Options& options);

  /// Takes a plan, which stays valid until it is finished.
  void launch(const BatchPlan& plan);
  /// Runs the earliest plan not yet finished. What was read from the prompt's logits is appended to
  /// `prompt_logprobs`.
  std::vector<SampledToken> finish(std::vector<PromptLogprob>& prompt_logprobs);
  /// Makes the block's slots unreadable until they are written again: at once or, since block
  /// operations of plans launched may still read them, behind those.
  void poison(kv::BlockId block) { poison({.block = block, .swapped = false}); }
  void poison_swapped(kv::BlockId block) { poison({.block = block, .swapped = true}); }
  /// Loses everything but the swap space.
  void restart();
  /// The first read of a slot that does not hold the row's token at that position, if there was
  /// one.
  const std::optional<std::string>& violation() const { return violation_; }

 private:
  struct Slot {
    int32_t position = -1;
    int32_t token = 0;    // layer 1's K and V
    uint64_t hidden = 0;  // layer 2's
  };
  struct Row {
    SequenceId sequence;
    SamplingSpec sampling;
    std::vector<int32_t> tokens;
  };

  struct Poison {
    kv::BlockId block = kv::kNoBlock;
    bool swapped = false;
  };
  struct Launched {
    const BatchPlan* plan = nullptr;
    std::vector<Poison> poisons;
  };

  void poison(const Poison& poison);
  void clear(const Poison& poison);
  std::vector<Slot>::iterator first_slot(bool swapped, kv::BlockId block);
  void move_blocks(const BatchPlan& plan);
  void store_tokens(const BatchPlan& plan);
  int32_t input(int32_t token, RowId row) const;
  void keep_accepted(const BatchPlan& plan, const std::vector<SampledToken>& sampled);
  std::vector<SampledToken> use_logits(const BatchPlan& plan,
                                       std::vector<PromptLogprob>& prompt_logprobs);
  void run_row(const BatchPlan& plan, size_t row_index);
  const Slot& read(std::span<const int32_t> table, int32_t position, int32_t token);
  int32_t token_at(const BatchPlan& plan, const PlanRow& row, int32_t position) const;

  Options options_;
  std::vector<Slot> slots_;
  std::vector<Slot> swap_slots_;
  std::deque<Launched> launched_;
  std::vector<Row> rows_;               // by row id
  std::vector<uint64_t> token_logits_;  // [T] of the current step
  std::optional<std::string> violation_;
};

}  // namespace quire::sched::testing
