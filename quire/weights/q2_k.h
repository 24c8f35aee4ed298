// Q2KReader: weights stored in GGUF's Q2_K.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 84-byte blocks of 256, in groups of 16: sixteen bytes with a 4-bit scale s (low) and minimum m
/// (high) of each group, 64 bytes of 2-bit codes, fp16 d and dmin; w = d * s * code - dmin * m.
/// Held as int4 codes.
class Q2KReader final : public StoredReader {
 public:
  Q2KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
