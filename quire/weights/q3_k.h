// Q3KReader: weights stored in GGUF's Q3_K.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 110-byte blocks of 256, in groups of 16: 32 bytes with the codes' third bits, 64 bytes of their
/// low 2 bits, 12 bytes of 6-bit scales s, an fp16 d; w = d * (s - 32) * (code - 4). Held as int4
/// codes.
class Q3KReader final : public StoredReader {
 public:
  Q3KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
