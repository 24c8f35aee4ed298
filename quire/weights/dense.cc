#include "quire/weights/dense.h"

#include "quire/base/check.h"

namespace quire::weights {

void load_floats(const std::byte* from, DType stored, int64_t count, float* to) {
  switch (stored) {
    case DType::kF32:
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i) to[i] = f16_to_f32(load_u16(from + 2 * i));
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(load_u16(from + 2 * i));
      return;
    default:
      QUIRE_CHECK(false);
  }
}

DenseReader::DenseReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options)
    : StoredReader(tensor, options,
                   {.name = {}, .layout = backend::Layout::kDense, .dtype = options.dense}) {}

void DenseReader::read(int64_t begin, int64_t count, backend::WeightRows& rows) const {
  rows.values.resize(static_cast<size_t>(count * in()));
  for (int64_t r = 0; r < count; ++r) {
    load_floats(row(begin + r), stored_dtype(), in(), rows.values.data() + r * in());
  }
}

}  // namespace quire::weights
