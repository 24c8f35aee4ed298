#include "tests/golden/golden_file.h"

#include <cstring>

#include "quire/base/error.h"

namespace quire::golden {
namespace {

template <typename T>
T element(const checkpoint::StoredTensor& tensor, size_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

[[noreturn]] void wrong_type(const checkpoint::StoredTensor& tensor) {
  throw LoadError(tensor.file, tensor.name, "another type", dtype_name(tensor.dtype));
}

}  // namespace

GoldenFile::GoldenFile(const std::string& name)
    : mapping_(QUIRE_SOURCE_DIR "/tests/golden/data/" + name),
      file_(mapping_.bytes(), mapping_.path()) {}

const checkpoint::StoredTensor& GoldenFile::find(std::string_view name) const {
  const checkpoint::StoredTensor* tensor = file_.find(name);
  if (tensor == nullptr) throw LoadError(file_.file(), name, "a tensor of this name", "none");
  return *tensor;
}

std::vector<std::byte> GoldenFile::bytes(std::string_view name) const {
  const checkpoint::StoredTensor& tensor = find(name);
  if (tensor.dtype != DType::kU8) wrong_type(tensor);
  return {tensor.bytes.begin(), tensor.bytes.end()};
}

std::vector<float> GoldenFile::floats(std::string_view name) const {
  const checkpoint::StoredTensor& tensor = find(name);
  const bool half = tensor.dtype == DType::kF16;
  if (!half && tensor.dtype != DType::kF32) wrong_type(tensor);
  std::vector<float> values(tensor.bytes.size() / (half ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = half ? f16_to_f32(element<uint16_t>(tensor, i)) : element<float>(tensor, i);
  }
  return values;
}

std::vector<int32_t> GoldenFile::ints(std::string_view name) const {
  const checkpoint::StoredTensor& tensor = find(name);
  const bool small = tensor.dtype == DType::kI16;
  if (!small && tensor.dtype != DType::kI32) wrong_type(tensor);
  std::vector<int32_t> values(tensor.bytes.size() / (small ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = small ? element<uint16_t>(tensor, i) : element<int32_t>(tensor, i);
  }
  return values;
}

uint64_t GoldenFile::number(std::string_view name) const {
  const checkpoint::StoredTensor& tensor = find(name);
  if (tensor.dtype != DType::kI64) wrong_type(tensor);
  return element<uint64_t>(tensor, 0);
}

int64_t GoldenFile::cols(std::string_view name) const {
  return find(name).cols();
}

}  // namespace quire::golden
