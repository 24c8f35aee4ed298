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

  /// Computes items straight into the results.
  void run(const ItemRange& range) const;
  /// Computes items into scratch of kScratchFloats, as wide as portion() allows; reads nothing but
  /// the program and its arena. `key` is one phase's of one step, of all walkers there ever were:
  /// see MatmulArgs::activations_key.
  void compute(const ItemRange& range, uint64_t key, float* scratch) const;
  /// Copies what compute() left to the results.
  void commit(const ItemRange& range, const float* scratch) const;

 private:
  static constexpr int64_t kRescueRows = 32;
  // Matmuls of more rows are also cut by rows, so that few panels can be shared out evenly.
  static constexpr int64_t kRowBlock = 96;
  // Panels an item has: what a kernel computes at once, single ones for few rows where panels are
  // read from memory and an even cut matters more.
  static constexpr int64_t kTilePanels = 4;
  static constexpr int64_t kFewRows = 8;

  int64_t tile_panels() const { return rows_ <= kFewRows ? 1 : kTilePanels; }
  int64_t row_blocks() const { return (rows_ + kRowBlock - 1) / kRowBlock; }
  int64_t items_of(const BoundOp& op) const;

  /// fn(matmul, begin, end) for the part [begin, end) of each operation's items inside `range`.
  template <typename Fn>
  void each_part(const ItemRange& range, Fn fn) const;
  /// Tiles [tile_begin, tile_end) for row blocks [block_begin, block_end).
  void call(const BoundMatmul& op, int64_t tile_begin, int64_t tile_end, int64_t block_begin,
            int64_t block_end) const;

  std::span<const BoundOp> ops_;
  int64_t rows_;
  int64_t items_ = 0;
};

}  // namespace quire::backend::cpu
