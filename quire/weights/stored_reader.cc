#include "quire/weights/stored_reader.h"

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::weights {

StoredReader::StoredReader(const checkpoint::StoredTensor& tensor, const ReaderOptions& options,
                           backend::WeightSpec spec)
    : tensor_(tensor), order_(options.order), source_(options.source), spec_(std::move(spec)) {
  if (tensor.shape.size() != 2) {
    throw LoadError(tensor.file, tensor.name, "a matrix",
                    fmt::format("{} dimensions", tensor.shape.size()));
  }
  spec_.name = tensor.name;
  spec_.out = tensor.rows();
  spec_.in = tensor.cols();
  const int64_t block = dtype_info(tensor.dtype).block_elements;
  if (spec_.in % block != 0) {
    throw LoadError(tensor.file, tensor.name, fmt::format("rows of whole blocks of {}", block),
                    fmt::format("rows of {}", spec_.in));
  }
  if (order_.interleaved_head_dim != 0 && spec_.out % order_.interleaved_head_dim != 0) {
    throw LoadError(tensor.file, tensor.name,
                    fmt::format("whole heads of {} rows", order_.interleaved_head_dim),
                    fmt::format("{} rows", spec_.out));
  }
  row_bytes_ = quire::row_bytes(tensor.dtype, spec_.in);
  if (static_cast<int64_t>(tensor.bytes.size()) != row_bytes_ * spec_.out) {
    throw LoadError(tensor.file, tensor.name, fmt::format("{} bytes", row_bytes_ * spec_.out),
                    fmt::format("{} bytes", tensor.bytes.size()));
  }
}

void StoredReader::done() const {
  if (source_ != nullptr) source_->release(tensor_);
}

}  // namespace quire::weights
