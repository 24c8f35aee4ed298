// GoldenFile: committed reference outputs, kept as a safetensors file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/base/mapped_file.h"
#include "quire/checkpoint/safetensors_file.h"

namespace quire::golden {

class GoldenFile {
 public:
  /// `name` below tests/golden/data.
  explicit GoldenFile(const std::string& name);

  std::vector<std::byte> bytes(std::string_view name) const;  // U8
  std::vector<float> floats(std::string_view name) const;     // F32 or F16
  std::vector<int32_t> ints(std::string_view name) const;     // I32, or I16 taken as unsigned
  uint64_t number(std::string_view name) const;               // one I64
  int64_t cols(std::string_view name) const;

 private:
  const checkpoint::StoredTensor& find(std::string_view name) const;

  MappedFile mapping_;
  checkpoint::SafetensorsFile file_;
};

}  // namespace quire::golden
