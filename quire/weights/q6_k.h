// Q6KReader: weights stored in GGUF's Q6_K.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 210-byte blocks of 256, in groups of 16: 128 bytes of the codes' low 4 bits, 64 bytes of their
/// upper 2, sixteen signed scales s, an fp16 d; w = d * s * (code - 32). Held as int8 codes.
class Q6KReader final : public StoredReader {
 public:
  Q6KReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
