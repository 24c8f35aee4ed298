// MatmulItems: the matmuls of a phase as one list of equal items, tiles of a few panels.
#pragma once

#include <cstdint>
#include <span>

#include "quire/backend/cpu/bound_op.h"
#include "quire/backend/cpu/work_ranges.h"

namespace quire::backend::cpu {

class MatmulItems {
 public:
  /// fp32 a worker's scratch holds. Enough that a claim is rarely cut short for it: a kernel call
  /// packs its activations once for all its panels.
  static constexpr int64_t kScratchFloats = int64_t{64} << 10;

  /// `ops` are BoundMatmuls over `rows` rows.
  MatmulItems(std::span<const BoundOp> ops, int64_t rows) : ops_(ops), rows_(rows) {
    for (const BoundOp& op : ops) items_ += items_of(op);
  }

  int64_t size() const { return items_; }
  /// Whether claims go through scratch, so that they can be computed again elsewhere. With many
  /// rows phases are long enough for the others to be busy while a worker is away, and the copy
  /// would show.
  bool rescuable() const { return rows_ <= kRescueRows; }
  Portion portion(int num_workers) const;

  /// Computes items straight into the results. `key` is one phase's of one step, of all walkers
  /// there ever were: see MatmulArgs::activations_key.
  void run(const ItemRange& range, uint64_t key) const;
  /// Computes items into scratch of kScratchFloats, as wide as portion() allows; reads nothing but
  /// the program and its arena.
  void compute(const ItemRange& range, uint64_t key, float* scratch) const;
  /// Copies what compute() left to the results.
  void commit(const ItemRange& range, const float* scratch) const;

 private:
  static constexpr int64_t kRescueRows = 32;
  // Matmuls of more rows are also cut by rows: blocks that a kernel packs at once, and whole tiles
  // of rows in all but the last.
  static constexpr int64_t kRowBlock = 96;
  static constexpr int64_t kTileRows = 12;
  // Panels an item has: what a kernel computes at once, single ones for few rows where panels are
  // read from memory and an even cut matters more.
  static constexpr int64_t kTilePanels = 4;
  static constexpr int64_t kFewRows = 8;

  int64_t tile_panels() const { return rows_ <= kFewRows ? 1 : kTilePanels; }
  int64_t row_blocks() const { return (rows_ + kRowBlock - 1) / kRowBlock; }
  int64_t tiles_of(const BoundOp& op) const;
  int64_t items_of(const BoundOp& op) const { return tiles_of(op) * row_blocks(); }
  /// First row of a block; that of block row_blocks() is the end.
  int64_t block_begin(int64_t block) const;

  /// fn(matmul, begin, end) for the part [begin, end) of each operation's items inside `range`.
  template <typename Fn>
  void each_part(const ItemRange& range, Fn fn) const;
  std::span<const BoundOp> ops_;
  int64_t rows_;
  int64_t items_ = 0;
};

}  // namespace quire::backend::cpu
