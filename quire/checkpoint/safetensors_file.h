// SafetensorsFile: the checked header of one .safetensors file and where each tensor lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/checkpoint/tensor_source.h"

namespace quire::checkpoint {

/// The tensors point into `bytes`, which must outlive them. Rejects headers above 100 MB, duplicate
/// keys, shapes that contradict byte ranges, overlaps, holes and trailing bytes with a LoadError
/// naming file and tensor.
class SafetensorsFile {
 public:
  SafetensorsFile(std::span<const std::byte> bytes, std::string file);

  /// By name.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Null when there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace quire::checkpoint
