#include "quire/backend/cpu/matmul_items.h"

#include <algorithm>
#include <cstring>
#include <variant>

namespace quire::backend::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Outputs [begin, end) that tiles [tile_begin, tile_end) of a matmul make.
struct Columns {
  int64_t begin;
  int64_t end;
  int64_t panel_end;

  Columns(const MatmulArgs& args, int64_t tile_begin, int64_t tile_end, int64_t tile_panels)
      : begin(tile_begin * tile_panels * kPanel),
        end(std::min(tile_end * tile_panels * kPanel, args.w.out)),
        panel_end(std::min(tile_end * tile_panels, num_panels(args.w.out))) {}

  /// Floats a row takes in scratch.
  int64_t width() const { return panel_end * kPanel - begin; }
};

}  // namespace

// An item is block * tiles + tile: a worker packs the rows of a block and goes through its panels.
int64_t MatmulItems::tiles_of(const BoundOp& op) const {
  return ceil_div(num_panels(std::get<BoundMatmul>(op).args.w.out), tile_panels());
}

int64_t MatmulItems::block_begin(int64_t block) const {
  const int64_t blocks = row_blocks();
  if (block == blocks) return rows_;
  const int64_t even = rows_ * block / blocks;
  return blocks == 1 ? even : even / kTileRows * kTileRows;
}

Portion MatmulItems::portion(int num_workers) const {
  if (rescuable()) {
    const int64_t panels = kScratchFloats / (rows_ * kPanel);
    return {tile_panels() == 1 ? kTilePanels : 1, panels / tile_panels()};
  }
  // A worker that is stopped keeps what it holds.
  return {1, std::max(items_ / (int64_t{2} * num_workers), int64_t{1})};
}

template <typename Fn>
void MatmulItems::each_part(const ItemRange& range, Fn fn) const {
  int64_t first = 0;  // item of the phase that is the operation's item 0
  for (const BoundOp& op : ops_) {
    const int64_t count = items_of(op);
    const int64_t begin = std::max(range.begin - first, int64_t{0});
    const int64_t end = std::min(range.end - first, count);
    if (begin < end) fn(std::get<BoundMatmul>(op), begin, end);
    first += count;
  }
}

void MatmulItems::run(const ItemRange& range, uint64_t key) const {
  each_part(range, [&](const BoundMatmul& op, int64_t begin, int64_t end) {
    const int64_t panels = num_panels(op.args.w.out);
    const int64_t tiles = ceil_div(panels, tile_panels());
    for (int64_t block = begin / tiles; block * tiles < end; ++block) {
      const int64_t row = block_begin(block);
      MatmulArgs args = op.args;
      args.panel_begin = std::max(begin - block * tiles, int64_t{0}) * tile_panels();
      args.panel_end = std::min(std::min(end - block * tiles, tiles) * tile_panels(), panels);
      args.a = static_cast<const std::byte*>(args.a) + row * args.a_stride;
      args.out += row * args.out_stride;
      args.rows = block_begin(block + 1) - row;
      args.activations_key = key;
      op.run(args);
    }
  });
}

// The scratch holds part after part, each as [rows][width].
void MatmulItems::compute(const ItemRange& range, uint64_t key, float* scratch) const {
  each_part(range, [&](const BoundMatmul& op, int64_t begin, int64_t end) {
    const Columns columns(op.args, begin, end, tile_panels());
    MatmulArgs args = op.args;
    args.panel_begin = columns.begin / kPanel;
    args.panel_end = columns.panel_end;
    args.rows = rows_;
    args.activations_key = key;
    args.out = scratch - columns.begin;  // where output 0 of the first row would lie
    args.out_stride = columns.width();
    op.run(args);
    scratch += rows_ * columns.width();
  });
}

void MatmulItems::commit(const ItemRange& range, const float* scratch) const {
  each_part(range, [&](const BoundMatmul& op, int64_t begin, int64_t end) {
    const Columns columns(op.args, begin, end, tile_panels());
    const auto bytes = static_cast<size_t>(columns.end - columns.begin) * 4;
    for (int64_t row = 0; row < rows_; ++row) {
      std::memcpy(op.args.out + row * op.args.out_stride + columns.begin,
                  scratch + row * columns.width(), bytes);
    }
    scratch += rows_ * columns.width();
  });
}

}  // namespace quire::backend::cpu
