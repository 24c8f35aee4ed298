// RowOrder: which stored row of a q or k projection is which row of the model.
#pragma once

#include <cstdint>

namespace quire::weights {

/// The identity, or the undoing of the reordering GGUF files of architecture "llama" carry: within
/// each head, rows [2][head_dim / 2] were stored as [head_dim / 2][2]. Whole rows move, so blocks
/// of codes, which run along a row, stay as they are.
struct RowOrder {
  int64_t interleaved_head_dim = 0;  // 0 = identity

  /// Where the model's row `row` is stored.
  int64_t stored_row(int64_t row) const {
    if (interleaved_head_dim == 0) return row;
    const int64_t in_head = row % interleaved_head_dim;
    const int64_t half = interleaved_head_dim / 2;
    return row - in_head + 2 * (in_head % half) + in_head / half;
  }
};

}  // namespace quire::weights
