// Sampler: chooses tokens from rows of logits; what a row gets depends on that row's request alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quire/runner/logprobs.h"
#include "quire/runner/token_counts.h"
#include "quire/sched/batch_plan.h"

namespace quire::runner {

/// Options are applied in vLLM's order: allowed ids, min_tokens, bias, penalties, temperature,
/// min_p, top_k, top_p. Different rows may be sampled at once from different workers; a row's
/// choice is a function of its logits, its SamplingSpec, its tokens and (seed, choice, position).
class Sampler {
 public:
  struct Options {
    int64_t vocab_size = 0;
    int32_t max_rows = 0;  // rows 0 .. max_rows - 1
    int num_workers = 1;
  };
  explicit Sampler(Options options);

  /// Takes over a sequence's options and the tokens it has so far.
  void start(const sched::RowStart& row);

  /// Chooses the token for a use of kind kSample and counts it as the row's output. `logits` is
  /// [vocab_size]. NaN logits are never chosen.
  int32_t sample(const sched::LogitsUse& use, std::span<const float> logits, int worker);
  /// How many most-likely tokens this use asks to be told, beside `token`'s own; -1 = nothing.
  int32_t num_logprobs(const sched::LogitsUse& use) const;
  /// ln p of `token` and of the `num_top` most likely tokens, from the raw logits.
  void describe(std::span<const float> logits, int32_t token, int32_t num_top, int worker,
                PositionLogprobs& out);

  /// Bytes the scratch buffers take for all workers.
  static int64_t scratch_bytes(int64_t vocab_size, int num_workers);

 private:
  struct Row {
    int32_t choice = 0;
    int32_t num_output = 0;
    bool counts_tokens = false;  // some penalty is on
    bool plain = true;           // the raw logits' order is the final order
    sched::SamplingSpec spec;
    TokenCounts counts;
  };
  static constexpr size_t kBuckets = 2048;
  struct Scratch {
    std::vector<float> scores;        // [vocab]
    std::vector<float> weights;       // [vocab]
    std::vector<double> block_sums;   // [num_sum_blocks(vocab)]
    std::vector<int32_t> candidates;  // ids still in the running
    std::vector<int32_t> edge;
    std::vector<int32_t> bucket_counts;  // [kBuckets]
    std::vector<double> bucket_masses;   // [kBuckets]
  };

  void adjust(const Row& row, std::span<float> scores) const;
  int32_t draw(const Row& row, float largest, double uniform, Scratch& scratch);
  double gather(const Row& row, double total, Scratch& scratch) const;
  static double mass_of(const Scratch& scratch);
  void narrow(Scratch& scratch, float factor, float largest, int64_t max_count, double max_mass);
  const Row& row_of(const sched::LogitsUse& use) const;

  Options options_;
  std::vector<Row> rows_;
  std::vector<Scratch> scratch_;  // by worker
};

}  // namespace quire::runner
