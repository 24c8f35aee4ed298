// StoredReader: the part all weight readers share: a stored matrix's rows found and released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quire/backend/packed_weight.h"
#include "quire/checkpoint/tensor_source.h"
#include "quire/weights/row_order.h"

namespace quire::weights {

/// What every reader is made from. `source`, when not null, is told when the rows were read.
struct ReaderOptions {
  DType dense = DType::kF32;  // fp32, bf16 or fp16: the layout of a dense weight
  RowOrder order;
  const checkpoint::TensorSource* source = nullptr;
};

/// Base of the formats whose rows lie one after another. The tensor's bytes must outlive it.
class StoredReader : public backend::WeightReader {
 public:
  const backend::WeightSpec& spec() const final { return spec_; }
  void done() const final;

 protected:
  /// `spec` holds layout, dtype, group, offset and zero; name and shape are filled in from
  /// `tensor`. Throws LoadError when `tensor` is no matrix or its rows are not whole blocks.
  StoredReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options,
               backend::WeightSpec spec);

  /// The bytes of the model's row `row`; not aligned.
  const std::byte* row(int64_t row) const {
    return tensor_.bytes.data() + order_.stored_row(row) * row_bytes_;
  }
  int64_t in() const { return spec_.in; }
  DType stored_dtype() const { return tensor_.dtype; }

 private:
  checkpoint::StoredTensor tensor_;
  RowOrder order_;
  const checkpoint::TensorSource* source_;
  int64_t row_bytes_;
  backend::WeightSpec spec_;
};

/// A little-endian 16-bit number at any address.
inline uint16_t load_u16(const std::byte* at) {
  uint16_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace quire::weights
