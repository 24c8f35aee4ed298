// AttentionPlan: one step's attention cut into items of work; the same for every layer of a group.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "quire/backend/program.h"
#include "quire/backend/step_meta.h"

namespace quire::backend::cpu {

/// A tile of query tokens of one sequence against one kv head, over splits [split_begin,
/// split_end).
struct AttentionItem {
  int32_t row = 0;  // of the step's sequences
  int32_t kv_head = 0;
  int32_t first_token = 0;  // of the step's tokens
  int32_t num_tokens = 0;
  int32_t first_position = 0;
  int32_t split_begin = 0;
  int32_t split_end = 0;
  int32_t shared = -1;  // the SharedTile it is one split of; -1: it folds all its splits itself
};

/// A tile whose splits are separate items: each leaves its partials, the last one to finish folds
/// them in order. Bits are the same as when one item does all of it.
struct SharedTile {
  int32_t split_begin = 0;
  int32_t num_splits = 0;
  int64_t first_partial = 0;  // row of the shared partials; a split takes num_tokens * group rows
};

class AttentionPlan {
 public:
  /// Rows (token, head) a tile has at most.
  static int32_t tile_rows(const AttentionShape& shape);
  /// Rows the partials of shared tiles have in all; beyond that tiles are not shared.
  static int64_t shared_rows(const AttentionShape& shape);

  AttentionPlan(const AttentionShape& shape, int32_t cache_group, int64_t max_tokens,
                int num_workers);

  /// Plans a step. Allocates nothing.
  void build(const StepMeta& meta);

  std::span<const AttentionItem> items() const { return items_; }
  const SharedTile& shared(int32_t index) const { return shared_[static_cast<size_t>(index)]; }
  /// Counts one split of a shared tile as done; true for the last. Counts anew for the next layer.
  bool finish_split(int32_t index) const;
  /// First item of a worker's static share; items differ in cost. May be asked at any time: a late
  /// worker then hears another step's.
  int64_t start_of(int worker) const {
    return starts_[static_cast<size_t>(worker)].load(std::memory_order_relaxed);
  }

  const AttentionShape& shape() const { return shape_; }
  int32_t cache_group() const { return cache_group_; }

 private:
  struct Tile {
    int32_t row, first_token, num_tokens, first_position, split_begin, split_end;
    int64_t cost;  // of one kv head, in (row, token) pairs
  };

  void cut_tiles(const StepMeta& meta);
  void append(const Tile& tile, int32_t kv_head);
  void append_shared(const Tile& tile, int32_t kv_head);
  void share_out();

  const AttentionShape shape_;
  const int32_t cache_group_;
  const int32_t group_;  // query heads a kv head serves
  const int num_workers_;
  std::vector<Tile> tiles_;
  std::vector<AttentionItem> items_;
  std::vector<int64_t> costs_;  // of items
  std::vector<SharedTile> shared_;
  std::unique_ptr<std::atomic<int32_t>[]> splits_left_;  // per shared tile
  int64_t shared_rows_used_ = 0;
  std::unique_ptr<std::atomic<int64_t>[]> starts_;  // [workers + 1]
};

}  // namespace quire::backend::cpu
