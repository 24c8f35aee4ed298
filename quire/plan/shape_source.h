// ShapeSource: a checkpoint that holds no numbers: every tensor a model asks for exists, with the
// shape it asks for and the element type a file of that kind would have.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/checkpoint/tensor_source.h"

namespace quire::plan {

/// Lets a model record its program from its configuration alone. Matrices lie in memory that may
/// not be read, so that a read is a crash and never a wrong count; vectors (norms, biases) are F32,
/// each of a number of its own, so that none is taken for another's copy.
class ShapeSource final : public checkpoint::TensorSource {
 public:
  /// The element type of the matrix of that name.
  using MatrixType = std::function<DType(std::string_view name)>;
  ShapeSource(std::string path, MatrixType type_of);
  ~ShapeSource() override;
  ShapeSource(const ShapeSource&) = delete;
  ShapeSource& operator=(const ShapeSource&) = delete;

  /// Null for a tensor that nobody has asked for with a shape.
  const checkpoint::StoredTensor* find(std::string_view name) const override;
  const checkpoint::StoredTensor* provide(std::string_view name,
                                          std::span<const int64_t> shape) const override;
  std::vector<std::string> names() const override;
  bool rope_rows_interleaved() const override { return false; }
  void release(const checkpoint::StoredTensor& /*tensor*/) const override {}
  const std::string& path() const override { return path_; }

 private:
  struct Range {
    std::byte* data;
    size_t size;
  };
  std::span<const std::byte> unreadable(size_t size) const;

  std::string path_;
  MatrixType type_of_;
  // Made as they are asked for: a source is constant to those who read it.
  mutable std::map<std::string, checkpoint::StoredTensor, std::less<>> tensors_;
  mutable std::deque<std::vector<float>> vectors_;
  mutable std::vector<Range> ranges_;
};

}  // namespace quire::plan
