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

// An item is tile * row_blocks + row_block.
int64_t MatmulItems::items_of(const BoundOp& op) const {
  const int64_t panels = num_panels(std::get<BoundMatmul>(op).args.w.out);
  return ceil_div(panels, tile_panels()) * row_blocks();
}

Portion MatmulItems::portion(int num_workers) const {
  if (rescuable()) {
    const int64_t panels = kScratchFloats / (rows_ * kPanel);
    return {tile_panels() == 1 ? kTilePanels : 1, panels / tile_panels()};
  }
  // A worker that is stopped keeps what it holds; but every claim packs its activations anew.
  return {1, std::max(items_ / (num_workers * 2), 2 * row_blocks())};
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

void MatmulItems::call(const BoundMatmul& op, int64_t tile_begin, int64_t tile_end,
                       int64_t block_begin, int64_t block_end) const {
  if (tile_begin == tile_end || block_begin == block_end) return;
  MatmulArgs args = op.args;
  const int64_t row = block_begin * kRowBlock;
  args.panel_begin = tile_begin * tile_panels();
  args.panel_end = std::min(tile_end * tile_panels(), num_panels(args.w.out));
  args.a = static_cast<const std::byte*>(args.a) + row * args.a_stride;
  args.out += row * args.out_stride;
  args.rows = std::min(block_end * kRowBlock, rows_) - row;
  op.run(args);
}

// A part of the first tile's rows, whole tiles, a part of the last one's.
void MatmulItems::run(const ItemRange& range) const {
  const int64_t blocks = row_blocks();
  each_part(range, [&](const BoundMatmul& op, int64_t begin, int64_t end) {
    const int64_t first = begin / blocks;
    const int64_t last = end / blocks;
    if (first == last) {
      call(op, first, first + 1, begin - first * blocks, end - first * blocks);
      return;
    }
    const int64_t whole = ceil_div(begin, blocks);
    if (whole != first) call(op, first, whole, begin - first * blocks, blocks);
    call(op, whole, last, 0, blocks);
    if (last * blocks != end) call(op, last, last + 1, 0, end - last * blocks);
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
