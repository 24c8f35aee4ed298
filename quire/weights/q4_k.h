// Q4KReader: weights stored in GGUF's Q4_K.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 144-byte blocks of 256, in groups of 32: fp16 d and dmin, 12 bytes of 6-bit scales s and
/// minimums m (split_scales_6bit), 128 bytes of 4-bit codes; w = d * s * code - dmin * m.
/// Everything is taken over as it is.
class Q4KReader final : public StoredReader {
 public:
  Q4KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
