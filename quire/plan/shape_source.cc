#include "quire/plan/shape_source.h"

#include <sys/mman.h>

#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::plan {

ShapeSource::ShapeSource(std::string path, MatrixType type_of)
    : path_(std::move(path)), type_of_(std::move(type_of)) {}

ShapeSource::~ShapeSource() {
  for (const Range& range : ranges_) munmap(range.data, range.size);
}

const checkpoint::StoredTensor* ShapeSource::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found != tensors_.end() ? &found->second : nullptr;
}

const checkpoint::StoredTensor* ShapeSource::provide(std::string_view name,
                                                     std::span<const int64_t> shape) const {
  if (const checkpoint::StoredTensor* known = find(name)) return known;
  if (shape.empty()) return nullptr;
  checkpoint::StoredTensor tensor;
  tensor.name = name;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.file = path_;
  if (shape.size() == 1) {
    const auto mark = static_cast<float>(vectors_.size() + 1);
    const auto& values = vectors_.emplace_back(static_cast<size_t>(shape[0]), mark);
    tensor.bytes = std::as_bytes(std::span(values));
  } else {
    tensor.dtype = type_of_(name);
    tensor.bytes =
        unreadable(static_cast<size_t>(row_bytes(tensor.dtype, tensor.cols()) * tensor.rows()));
  }
  return &tensors_.emplace(std::string(name), std::move(tensor)).first->second;
}

std::vector<std::string> ShapeSource::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

/// The same addresses serve for all: nobody reads them.
std::span<const std::byte> ShapeSource::unreadable(size_t size) const {
  if (ranges_.empty() || ranges_.back().size < size) {
    void* data = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw LoadError(path_, fmt::format("no address space of {} B", size));
    ranges_.push_back({static_cast<std::byte*>(data), size});
  }
  return {ranges_.back().data, size};
}

}  // namespace quire::plan
