// TensorSource: the named tensors of a checkpoint, whatever its file format, mapped and not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/tensor/dtype.h"

namespace quire::checkpoint {

/// One stored tensor. Shapes are row-major with the slowest dimension first ([out, in] for a
/// weight), whatever the file's own convention. `file` is for error messages.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::string file;

  int64_t rows() const { return shape.size() < 2 ? 1 : shape[0]; }
  int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
};

/// All counts and ranges were checked against the file when it was opened.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Null when there is no tensor of that name. Names are HF names
  /// ("model.layers.0.self_attn.q_proj.weight"); the GGUF reader maps its own to them.
  virtual const StoredTensor* find(std::string_view name) const = 0;
  /// The tensor a model of this shape asks for: find(), but for a source that holds shapes alone
  /// and makes them as they are asked for.
  virtual const StoredTensor* provide(std::string_view name,
                                      std::span<const int64_t> /*shape*/) const {
    return find(name);
  }
  virtual std::vector<std::string> names() const = 0;
  /// True when q/k rows were reordered for interleaved RoPE (GGUF, architecture "llama") and must
  /// be put back.
  virtual bool rope_rows_interleaved() const = 0;
  /// The pages of this tensor will not be read again.
  virtual void release(const StoredTensor& tensor) const = 0;
  /// The file or folder, for messages.
  virtual const std::string& path() const = 0;
};

}  // namespace quire::checkpoint
