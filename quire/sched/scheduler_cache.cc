// The prefix cache's half of Scheduler: what may be shared, is waited for, and is published.
#include <algorithm>
#include <cstddef>
#include <span>

#include "quire/sched/scheduler.h"

namespace quire::sched {
namespace {

std::span<const int32_t> block_of(const Sequence& sequence, int32_t index, int32_t block_tokens) {
  return std::span(sequence.tokens)
      .subspan(static_cast<size_t>(index) * static_cast<size_t>(block_tokens),
               static_cast<size_t>(block_tokens));
}

const kv::BlockHash& parent_of(const Sequence& sequence, int32_t index) {
  return index == 0 ? sequence.group->root : sequence.hashes[static_cast<size_t>(index) - 1];
}

}  // namespace

/// Not while log-probabilities of its prompt are still to be read: they come from the logits that a
/// hit would skip.
bool Scheduler::may_share(const Sequence& sequence) const {
  if (!options_.enable_prefix_caching) return false;
  const SequenceGroup& group = *sequence.group;
  return sequence.id.choice > 0 || !group.wants_prompt_logprobs() ||
         group.next_prompt_logprob >= sequence.num_prompt;
}

/// Blocks that a hit may cover: full ones without the last token, so that logits exist.
int32_t Scheduler::shareable_blocks(const Sequence& sequence) const {
  return (sequence.num_tokens() - 1) / pool_.block_tokens();
}

/// Names the sequence's first `num_blocks` blocks, all of whose tokens are known.
void Scheduler::extend_hashes(Sequence& sequence, int32_t num_blocks) const {
  for (auto i = static_cast<int32_t>(sequence.hashes.size()); i < num_blocks; ++i) {
    sequence.hashes.push_back(kv::block_hash(options_.cache_seed, parent_of(sequence, i),
                                             block_of(sequence, i, pool_.block_tokens())));
  }
}

kv::BlockId Scheduler::find_in(const kv::BlockPool& pool, const Sequence& sequence,
                               int32_t index) const {
  return pool.find(sequence.hashes[static_cast<size_t>(index)], parent_of(sequence, index),
                   block_of(sequence, index, pool_.block_tokens()));
}

void Scheduler::publish_in(kv::BlockPool& pool, kv::BlockId block, const Sequence& sequence,
                           int32_t index) const {
  pool.publish(block, sequence.hashes[static_cast<size_t>(index)], parent_of(sequence, index),
               block_of(sequence, index, pool_.block_tokens()));
}

/// Where the sequence's block is published: in the pool, else in the swap space, else nowhere.
Scheduler::FoundBlock Scheduler::find_cached(const Sequence& sequence, int32_t index) const {
  FoundBlock found{.block = find_in(pool_, sequence, index)};
  if (found.block == kv::kNoBlock) found.swapped = find_swapped(sequence, index);
  return found;
}

/// What `sequence`, which waits, finds when it gets a row: its own blocks if it was swapped out,
/// else those of the cache.
Scheduler::CachedBlocks Scheduler::count_cached(Sequence& sequence) const {
  CachedBlocks counts;
  const bool is_swapped = sequence.swapped.size() > 0;
  if (!is_swapped && !may_share(sequence)) return counts;
  const int32_t most = is_swapped ? named_blocks(sequence) : shareable_blocks(sequence);
  extend_hashes(sequence, most);
  for (; counts.found < most; ++counts.found) {
    const FoundBlock found = find_cached(sequence, counts.found);
    if (!found && !is_swapped) break;
    if (found.block != kv::kNoBlock && pool_.ref_count(found.block) > 0) ++counts.in_use;
  }
  return counts;
}

/// Takes over the published blocks that follow the sequence's own, if it stands at their border, as
/// far as blocks are free for those that nobody holds.
void Scheduler::adopt_cached(Sequence& sequence) {
  const int32_t block_tokens = pool_.block_tokens();
  if (sequence.num_computed % block_tokens != 0) return;
  const int32_t most = shareable_blocks(sequence);
  int32_t index = sequence.num_computed / block_tokens;
  if (index >= most || !may_share(sequence)) return;
  int32_t num_free = pool_.num_free();
  found_.clear();
  for (; index < most; ++index) {
    const FoundBlock found = find_cached(sequence, index);
    if (!found) break;
    const bool is_held = found.block != kv::kNoBlock && pool_.ref_count(found.block) > 0;
    if (!is_held && num_free-- == 0) break;
    if (found.block == kv::kNoBlock) swap_counts_.tier_hits += block_tokens;
    found_.push_back(found);
  }
  pin_found();
  take_found(sequence, index);
  const auto num_tokens = static_cast<int32_t>(found_.size()) * block_tokens;
  sequence.num_computed += num_tokens;
  sequence.num_cached += num_tokens;
  cache_counts_.hits += num_tokens;
  sequence.num_published = index;
}

/// Whether another sequence, in a step in flight or earlier in this one, computes the block that
/// this one needs next, and which it waits for unless it is the first of all.
bool Scheduler::waits_for_next(const Sequence& sequence) const {
  if (&sequence == first_) return false;
  if (sequence.num_computed % pool_.block_tokens() != 0) return false;
  const int32_t index = sequence.num_computed / pool_.block_tokens();
  if (index >= shareable_blocks(sequence) || !may_share(sequence)) return false;
  for (StepId step = oldest_step(); step <= next_step_; ++step) {
    if (step_of(step).claimed.contains(sequence.hashes[static_cast<size_t>(index)])) return true;
  }
  return false;
}

/// The step computes these tokens: others are to wait for the blocks that they lie in, as far as
/// those have a name.
void Scheduler::claim(const Sequence& sequence, int32_t num_tokens) {
  if (!options_.enable_prefix_caching) return;
  const int32_t first = sequence.num_computed / pool_.block_tokens();
  const int32_t last = std::min(pool_.blocks_for(sequence.num_computed + num_tokens),
                                static_cast<int32_t>(sequence.hashes.size()));
  for (int32_t i = first; i < last; ++i) {
    step_->claimed.insert(sequence.hashes[static_cast<size_t>(i)]);
  }
}

/// The step has been run: the blocks that it filled can be shared from now on.
void Scheduler::publish_computed(const Step& step) {
  for (const auto& [sequence, end] : step.computing) publish_full(*sequence, end);
}

/// Publishes the blocks of the sequence's first `num_stored` tokens. Behind a stop there may be
/// some that nobody knows.
void Scheduler::publish_full(Sequence& sequence, int32_t num_stored) {
  if (!options_.enable_prefix_caching) return;
  const int32_t full = std::min(num_stored, sequence.num_tokens()) / pool_.block_tokens();
  if (sequence.num_published >= full) return;
  extend_hashes(sequence, full);
  for (int32_t& i = sequence.num_published; i < full; ++i) {
    publish_in(pool_, sequence.table.block(i), sequence, i);
  }
}

}  // namespace quire::sched
