#include "quire/bench/kv_waste.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "quire/base/check.h"
#include "quire/base/error.h"
#include "quire/bench/step_driver.h"

namespace quire::bench {
namespace {

// Distinct prompts: sharing between requests would hide waste.
sched::Request make_request(size_t index, LengthPair lengths, int32_t max_model_len) {
  sched::Request request;
  request.id = static_cast<sched::RequestId>(index);
  const int32_t input = std::min(lengths.input_len, max_model_len - 1);
  request.prompt.assign(static_cast<size_t>(input), static_cast<int32_t>(index));
  request.sampling.max_tokens = std::min(lengths.output_len, max_model_len - input);
  return request;
}

void note_filled(const sched::BatchPlan& plan, int32_t block_tokens,
                 std::vector<int32_t>& filled_slots) {
  const sched::GroupPlan& group = plan.groups[0];
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const size_t begin = i * static_cast<size_t>(group.table_width);
    for (int32_t first = 0; first < plan.rows[i].context_len; first += block_tokens) {
      const int32_t block = group.block_table[begin + static_cast<size_t>(first / block_tokens)];
      filled_slots[static_cast<size_t>(block)] =
          std::min(block_tokens, plan.rows[i].context_len - first);
    }
  }
}

void measure(const kv::BlockPool& pool, const std::vector<int32_t>& filled_slots, KvWaste& waste) {
  for (kv::BlockId block = 0; block < pool.num_blocks(); ++block) {
    if (pool.ref_count(block) == 0) continue;
    waste.allocated += pool.block_tokens();
    waste.filled += filled_slots[static_cast<size_t>(block)];
  }
}

sched::SchedulerOptions scheduler_options(const KvWasteOptions& options) {
  return {.max_num_batched_tokens = options.max_num_batched_tokens,
          .max_num_seqs = options.max_num_seqs,
          .max_model_len = options.max_model_len,
          .max_logits_rows = options.max_num_seqs,
          .block_tokens = options.block_tokens,
          .num_blocks = options.pool_tokens / options.block_tokens};
}

KvWaste simulate(std::span<const LengthPair> lengths, const sched::SchedulerOptions& options) {
  StepDriver driver(options);
  KvWaste waste{.block_tokens = options.block_tokens};
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (const auto error = driver.submit(make_request(i, lengths[i], options.max_model_len))) {
      throw LoadError("bench kv", error->message);
    }
  }
  std::vector<int32_t> filled_slots(static_cast<size_t>(driver.scheduler().pool().num_blocks()));
  while (const sched::BatchPlan* plan = driver.plan()) {
    note_filled(*plan, options.block_tokens, filled_slots);
    measure(driver.scheduler().pool(), filled_slots, waste);
    waste.mean_running += driver.scheduler().num_running();
    ++waste.num_steps;
    for (const sched::CommitEvent& event : driver.commit()) {
      if (event.finish != sched::FinishReason::kNone) ++waste.num_requests;
    }
  }
  QUIRE_CHECK(driver.scheduler().idle());
  waste.num_preemptions = driver.scheduler().num_preemptions();
  if (waste.num_steps > 0) waste.mean_running /= static_cast<double>(waste.num_steps);
  return waste;
}

}  // namespace

KvWaste simulate_kv_waste(std::span<const LengthPair> lengths, const KvWasteOptions& options) {
  return simulate(lengths, scheduler_options(options));
}

KvWaste simulate_contiguous(std::span<const LengthPair> lengths, const KvWasteOptions& options) {
  sched::SchedulerOptions slabs = scheduler_options(options);
  slabs.block_tokens = options.max_model_len;
  const int32_t num_slabs = options.pool_tokens / options.max_model_len;
  slabs.max_num_seqs = std::min(options.max_num_seqs, num_slabs);
  // Admission leaves each running sequence a block to grow into, which a slab never needs: these
  // stay free, and so are not counted.
  slabs.num_blocks = 2 * num_slabs;
  return simulate(lengths, slabs);
}

}  // namespace quire::bench
