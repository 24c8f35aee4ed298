// Q40Reader: weights stored in GGUF's Q4_0.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 18-byte blocks of 32: an fp16 scale d, then 32 codes of 4 bits; w = d * (code - 8).
/// Codes and scales are taken over as they are.
class Q40Reader final : public StoredReader {
 public:
  Q40Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
