// DenseReader: weights stored as plain F32, F16 or BF16 numbers.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// Held dense as fp32, bf16 or fp16 (ReaderOptions::dense); what is narrower than stored rounds to
/// nearest even.
class DenseReader final : public StoredReader {
 public:
  DenseReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

/// Converts `count` F32, F16 or BF16 numbers at `from` (any address) to fp32.
void load_floats(const std::byte* from, DType stored, int64_t count, float* to);

}  // namespace quire::weights
