#include "quire/backend/cpu/attention_plan.h"

#include <algorithm>

#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu {
namespace {

// Enough rows that a page read serves many queries, few enough that a tile's outputs stay in L1.
constexpr int32_t kTileRows = 48;
// Contexts up to 256 splits (131,072 tokens) of one sequence can be shared out.
constexpr int64_t kSharedSplits = 256;
// A tile that costs more than this share of a worker's part is cut into its splits.
constexpr int64_t kTilesAWorker = 4;
// What an item costs beside its arithmetic, in (row, token) pairs.
constexpr int64_t kItemCost = 64;

}  // namespace

int32_t AttentionPlan::tile_rows(const AttentionShape& shape) {
  const int32_t group = shape.num_heads / shape.num_kv_heads;
  return std::max(1, kTileRows / group) * group;
}

int64_t AttentionPlan::shared_rows(const AttentionShape& shape) {
  return kSharedSplits * shape.num_heads;
}

AttentionPlan::AttentionPlan(const AttentionShape& shape, int32_t cache_group, int64_t max_tokens,
                             int num_workers)
    : shape_(shape),
      cache_group_(cache_group),
      group_(shape.num_heads / shape.num_kv_heads),
      num_workers_(num_workers),
      starts_(std::make_unique<std::atomic<int64_t>[]>(static_cast<size_t>(num_workers) + 1)) {
  // Every tile has a token, and every split of a shared tile a row per query head.
  const auto max_shared = static_cast<size_t>(shared_rows(shape) / group_);
  const auto max_items = static_cast<size_t>(max_tokens * shape.num_kv_heads) + max_shared;
  tiles_.reserve(static_cast<size_t>(max_tokens));
  items_.reserve(max_items);
  costs_.reserve(max_items);
  shared_.reserve(max_shared);
  splits_left_ = std::make_unique<std::atomic<int32_t>[]>(max_shared);
}

void AttentionPlan::build(const StepMeta& meta) {
  tiles_.clear();
  items_.clear();
  costs_.clear();
  shared_.clear();
  shared_rows_used_ = 0;
  cut_tiles(meta);
  int64_t total = 0;
  for (const Tile& tile : tiles_) total += tile.cost * shape_.num_kv_heads;
  const int64_t large = total / (num_workers_ * kTilesAWorker);
  for (const Tile& tile : tiles_) {
    const int64_t num_splits = tile.split_end - tile.split_begin;
    for (int32_t kv_head = 0; kv_head < shape_.num_kv_heads; ++kv_head) {
      const bool fits =
          shared_rows_used_ + num_splits * tile.num_tokens * group_ <= shared_rows(shape_);
      const bool share = num_workers_ > 1 && num_splits > 1 && tile.cost > large && fits;
      share ? append_shared(tile, kv_head) : append(tile, kv_head);
    }
  }
  share_out();
}

bool AttentionPlan::finish_split(int32_t index) const {
  std::atomic<int32_t>& left = splits_left_[static_cast<size_t>(index)];
  if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  left.store(shared(index).num_splits, std::memory_order_relaxed);
  return true;
}

void AttentionPlan::cut_tiles(const StepMeta& meta) {
  const int32_t tile_tokens = tile_rows(shape_) / group_;
  for (int32_t row = 0; row < static_cast<int32_t>(meta.num_rows()); ++row) {
    const auto r = static_cast<size_t>(row);
    const int32_t begin = meta.query_start[r];
    const int32_t end = meta.query_start[r + 1];
    const int32_t start_position = meta.context_len[r] - (end - begin);
    for (int32_t token = begin; token < end; token += tile_tokens) {
      Tile tile{};
      tile.row = row;
      tile.first_token = token;
      tile.num_tokens = std::min(tile_tokens, end - token);
      tile.first_position = start_position + token - begin;
      const int32_t context = tile.first_position + tile.num_tokens;
      const int32_t window = shape_.window;
      const int32_t first_seen = window > 0 ? std::max(0, tile.first_position + 1 - window) : 0;
      tile.split_begin = static_cast<int32_t>(first_seen / kAttentionSplit);
      tile.split_end = static_cast<int32_t>((context + kAttentionSplit - 1) / kAttentionSplit);
      tile.cost = kItemCost + int64_t{context - first_seen} * tile.num_tokens * group_;
      tiles_.push_back(tile);
    }
  }
}

void AttentionPlan::append(const Tile& tile, int32_t kv_head) {
  items_.push_back({tile.row, kv_head, tile.first_token, tile.num_tokens, tile.first_position,
                    tile.split_begin, tile.split_end, -1});
  costs_.push_back(tile.cost);
}

void AttentionPlan::append_shared(const Tile& tile, int32_t kv_head) {
  const auto index = static_cast<int32_t>(shared_.size());
  const int32_t num_splits = tile.split_end - tile.split_begin;
  shared_.push_back({tile.split_begin, num_splits, shared_rows_used_});
  shared_rows_used_ += int64_t{num_splits} * tile.num_tokens * group_;
  splits_left_[static_cast<size_t>(index)].store(num_splits, std::memory_order_relaxed);
  for (int32_t split = tile.split_begin; split < tile.split_end; ++split) {
    items_.push_back({tile.row, kv_head, tile.first_token, tile.num_tokens, tile.first_position,
                      split, split + 1, index});
    costs_.push_back(tile.cost / num_splits);
  }
}

/// Cuts the list where each worker's share of the cost begins.
void AttentionPlan::share_out() {
  int64_t total = 0;
  for (const int64_t cost : costs_) total += cost;
  size_t item = 0;
  int64_t before = 0;
  for (int worker = 0; worker <= num_workers_; ++worker) {
    while (item < costs_.size() && before * num_workers_ < total * worker) before += costs_[item++];
    starts_[static_cast<size_t>(worker)].store(static_cast<int64_t>(item),
                                               std::memory_order_relaxed);
  }
}

}  // namespace quire::backend::cpu
