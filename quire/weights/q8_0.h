// Q80Reader: weights stored in GGUF's Q8_0.
#pragma once

#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// 34-byte blocks of 32: an fp16 scale d, then 32 signed bytes; w = d * code.
/// Codes and scales are taken over as they are.
class Q80Reader final : public StoredReader {
 public:
  Q80Reader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options);
  void read(int64_t begin, int64_t count, backend::WeightRows& rows) const override;
};

}  // namespace quire::weights
