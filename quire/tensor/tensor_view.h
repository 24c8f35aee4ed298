// TensorView: a non-owning look at rows of numbers in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quire/tensor/dtype.h"

namespace quire {

/// `rows` x `cols` elements of `dtype`; row r starts at data + r * row_stride (bytes). Vectors have
/// one row.
struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;

  template <typename T>
  T* row(int64_t index) const {
    return reinterpret_cast<T*>(data + index * row_stride);
  }
};

}  // namespace quire
