// Q51Reader: weights stored in GGUF's Q5_1.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 24-byte blocks of 32: an fp16 scale d and minimum m, a word of the codes' fifth bits (bit j of
/// code j), then their low 4 bits as Q4_1 has them; w = d * code + m. Held as int8 codes; scales as
/// they are.
class Q51Reader final : public StoredReader {
 public:
  Q51Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
