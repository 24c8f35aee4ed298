// The swap space's half of Scheduler: who is swapped out instead of computed again, how blocks come
// back, and what the second tier of the prefix cache keeps.
#include <algorithm>
#include <cstddef>

#include "quire/base/check.h"
#include "quire/sched/scheduler.h"

namespace quire::sched {

/// Takes `n` more blocks for the table; what they held and the swap space keeps is copied there
/// before anything else is done to them.
void Scheduler::append_blocks(kv::BlockTable& table, int32_t n) {
  QUIRE_CHECK(table.append(n));
  write_moves();
}

void Scheduler::write_moves() {
  for (const kv::BlockCopy& move : pool_.moved()) write_op(BlockOp::Kind::kSwapOut, move);
  pool_.clear_moved();
}

void Scheduler::write_op(BlockOp::Kind kind, kv::BlockCopy copy) {
  step_->writer.block_op(kind, copy);
  if (kind == BlockOp::Kind::kSwapOut) ++swap_counts_.blocks_out;
  if (kind == BlockOp::Kind::kSwapIn) ++swap_counts_.blocks_in;
}

/// The copy of the sequence's full block in the swap space that is published there, or kNoBlock.
kv::BlockId Scheduler::find_swapped(const Sequence& sequence, int32_t index) const {
  if (!swap_pool_) return kv::kNoBlock;
  return find_in(*swap_pool_, sequence, index);
}

/// Full blocks of the computed tokens, which have names if there is a prefix cache.
int32_t Scheduler::named_blocks(Sequence& sequence) const {
  if (!options_.enable_prefix_caching) return 0;
  const int32_t full = sequence.num_computed / pool_.block_tokens();
  extend_hashes(sequence, full);
  return full;
}

/// Whether `victim`, which is preempted, is to be swapped out: the swap space has room, and by
/// estimate it costs less than to compute again what it loses. Leaves in found_ where its blocks
/// are in the swap space already.
bool Scheduler::is_better_swapped(Sequence& victim) {
  if (!swap_pool_ || options_.preemption_mode == PreemptionMode::kRecompute) return false;
  if (victim.num_computed == 0) return false;
  const int32_t named = named_blocks(victim);
  const int32_t lasting = may_share(victim) ? std::min(named, shareable_blocks(victim)) : 0;
  int32_t num_kept = 0;  // leading blocks that a computation would find in the cache
  int32_t num_taken = 0;
  int64_t num_copies = 0;
  found_.clear();
  for (int32_t i = 0; i < victim.table.size(); ++i) {
    const kv::BlockId block = i < named ? find_in(pool_, victim, i) : kv::kNoBlock;
    const kv::BlockId swapped = i < named ? find_swapped(victim, i) : kv::kNoBlock;
    found_.push_back({.block = block, .swapped = swapped});
    const bool is_cached = block != kv::kNoBlock || swapped != kv::kNoBlock;
    if (i == num_kept && i < lasting && is_cached) ++num_kept;
    if (swapped == kv::kNoBlock) ++num_copies;
    if (swapped == kv::kNoBlock || swap_pool_->ref_count(swapped) == 0) ++num_taken;
    // A block that others hold too will probably be there still when the victim returns.
    const bool stays =
        block != kv::kNoBlock && pool_.ref_count(block) > (block == victim.table.block(i) ? 1 : 0);
    if (!stays) ++num_copies;
  }
  if (num_taken > swap_pool_->num_free()) return false;
  if (options_.preemption_mode == PreemptionMode::kSwap) return true;
  const int64_t num_lost = victim.num_computed - num_kept * pool_.block_tokens();
  return num_copies * options_.swap_block_ns < num_lost * options_.recompute_token_ns;
}

/// Gives each of the victim's blocks one in the swap space: the one found there or a new one, into
/// which it is copied. Full blocks are published there, for others too.
void Scheduler::swap_out(Sequence& victim) {
  for (const FoundBlock& found : found_) {
    if (found.swapped != kv::kNoBlock) swap_pool_->share(found.swapped);
  }
  victim.swapped = kv::BlockTable(*swap_pool_);
  victim.swapped.reserve(victim.table.size());
  const int32_t named = named_blocks(victim);
  for (int32_t i = 0; i < victim.table.size(); ++i) {
    const kv::BlockId found = found_[static_cast<size_t>(i)].swapped;
    if (found != kv::kNoBlock) {
      victim.swapped.adopt(found);
      swap_pool_->release(found);
      continue;
    }
    QUIRE_CHECK(victim.swapped.append(1));
    const kv::BlockId swapped = victim.swapped.block(i);
    write_op(BlockOp::Kind::kSwapOut, {.source = victim.table.block(i), .destination = swapped});
    if (i < named) publish_in(*swap_pool_, swapped, victim, i);
  }
}

/// The sequence, which was swapped out and has just got a row again, gets its blocks back: those
/// still published are shared, the others copied.
void Scheduler::swap_in(Sequence& sequence) {
  const int32_t named = named_blocks(sequence);
  found_.clear();
  for (int32_t i = 0; i < sequence.swapped.size(); ++i) {
    const kv::BlockId block = i < named ? find_in(pool_, sequence, i) : kv::kNoBlock;
    found_.push_back({.block = block, .swapped = sequence.swapped.block(i)});
  }
  pin_found();
  take_found(sequence, named);
  sequence.swapped.clear();
  sequence.num_published = named;
}

/// Holds what was found, so that none of it is taken to make room for the rest of it.
void Scheduler::pin_found() {
  for (const FoundBlock& found : found_) {
    if (found.block != kv::kNoBlock) {
      pool_.share(found.block);
    } else {
      swap_pool_->share(found.swapped);
    }
  }
}

/// Appends what was found and pinned to the sequence's table, as copies where the swap space alone
/// has it; its blocks before `num_named` are then published.
void Scheduler::take_found(Sequence& sequence, int32_t num_named) {
  for (const FoundBlock& found : found_) {
    if (found.block != kv::kNoBlock) {
      sequence.table.adopt(found.block);
      pool_.release(found.block);
      continue;
    }
    const int32_t index = sequence.table.size();
    append_blocks(sequence.table, 1);
    const kv::BlockId block = sequence.table.block(index);
    write_op(BlockOp::Kind::kSwapIn, {.source = found.swapped, .destination = block});
    if (index < num_named) publish_in(pool_, block, sequence, index);
    swap_pool_->release(found.swapped);
  }
}

void Scheduler::restore_cached(kv::BlockId swap_block, const kv::BlockHash& hash,
                               const kv::BlockHash& parent, std::span<const int32_t> tokens) {
  QUIRE_CHECK(next_step_ == 0);
  if (!swap_pool_ || !options_.enable_prefix_caching) return;
  if (static_cast<int32_t>(tokens.size()) != pool_.block_tokens()) return;
  if (!(kv::block_hash(options_.cache_seed, parent, tokens) == hash)) return;
  swap_pool_->restore(swap_block, hash, parent, tokens);
}

const BatchPlan* Scheduler::plan_flush() {
  if (!idle() || in_flight() || !swap_pool_) return nullptr;
  begin_step();
  pool_.fill_tier();
  write_moves();
  return step_->writer.empty() ? nullptr : finish_step();
}

SwapCounts Scheduler::swap_counts() const {
  SwapCounts counts = swap_counts_;
  if (swap_pool_) counts.tier_evictions = swap_pool_->num_evictions();
  return counts;
}

double Scheduler::swap_usage() const {
  if (!swap_pool_) return 0;
  return static_cast<double>(swap_pool_->num_used()) / swap_pool_->num_blocks();
}

}  // namespace quire::sched
