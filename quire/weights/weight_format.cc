#include "quire/weights/weight_format.h"

#include <array>

#include "quire/base/error.h"
#include "quire/weights/dense.h"
#include "quire/weights/q2_k.h"
#include "quire/weights/q3_k.h"
#include "quire/weights/q4_0.h"
#include "quire/weights/q4_1.h"
#include "quire/weights/q4_k.h"
#include "quire/weights/q5_0.h"
#include "quire/weights/q5_1.h"
#include "quire/weights/q5_k.h"
#include "quire/weights/q6_k.h"
#include "quire/weights/q8_0.h"

namespace quire::weights {
namespace {

using Factory = std::unique_ptr<backend::WeightReader> (*)(const checkpoint::StoredTensor&,
                                                           const ReaderOptions&);

template <typename Reader>
std::unique_ptr<backend::WeightReader> make(const checkpoint::StoredTensor& tensor,
                                            const ReaderOptions& options) {
  return std::make_unique<Reader>(tensor, options);
}

struct Format {
  DType stored;
  Factory factory;
};

constexpr std::array<Format, 13> kFormats = {{
    {DType::kF32, make<DenseReader>},
    {DType::kF16, make<DenseReader>},
    {DType::kBF16, make<DenseReader>},
    {DType::kQ4_0, make<Q40Reader>},
    {DType::kQ4_1, make<Q41Reader>},
    {DType::kQ5_0, make<Q50Reader>},
    {DType::kQ5_1, make<Q51Reader>},
    {DType::kQ8_0, make<Q80Reader>},
    {DType::kQ2_K, make<Q2KReader>},
    {DType::kQ3_K, make<Q3KReader>},
    {DType::kQ4_K, make<Q4KReader>},
    {DType::kQ5_K, make<Q5KReader>},
    {DType::kQ6_K, make<Q6KReader>},
}};

std::string known_formats() {
  std::string names;
  for (const Format& format : kFormats) {
    if (!names.empty()) names += ", ";
    names += dtype_name(format.stored);
  }
  return names;
}

}  // namespace

std::unique_ptr<backend::WeightReader> make_weight_reader(const checkpoint::StoredTensor& tensor,
                                                          WeightDType dtype, RowOrder order,
                                                          const checkpoint::TensorSource* source) {
  for (const Format& format : kFormats) {
    if (format.stored != tensor.dtype) continue;
    return format.factory(
        tensor, {.dense = dense_dtype(tensor.dtype, dtype), .order = order, .source = source});
  }
  throw LoadError(tensor.file, tensor.name, "one of " + known_formats(), dtype_name(tensor.dtype));
}

}  // namespace quire::weights
