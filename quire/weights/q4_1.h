// Q41Reader: weights stored in GGUF's Q4_1.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 20-byte blocks of 32: an fp16 scale d and minimum m, then 32 codes of 4 bits; w = d * code + m.
/// Codes and scales are taken over as they are.
class Q41Reader final : public StoredReader {
 public:
  Q41Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
