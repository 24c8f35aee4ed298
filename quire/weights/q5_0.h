// Q50Reader: weights stored in GGUF's Q5_0.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 22-byte blocks of 32: an fp16 scale d, a word of the codes' fifth bits (bit j of code j), then
/// their low 4 bits as Q4_0 has them; w = d * (code - 16). Held as int8 codes; scales as they are.
class Q50Reader final : public StoredReader {
 public:
  Q50Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
