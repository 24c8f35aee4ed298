// Q5KReader: weights stored in GGUF's Q5_K.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 176-byte blocks of 256, in groups of 32: as Q4_K, with 32 bytes of the codes' fifth bits before
/// the others; w = d * s * code - dmin * m. Held as int8 codes.
class Q5KReader final : public StoredReader {
 public:
  Q5KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
