// GgufWriter: writes small GGUF files for tests, correct unless told otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/tensor/dtype.h"

namespace quire::checkpoint::testing {

/// Collects metadata and tensors; bytes() is the file, version 3, aligned to 32. Nothing is
/// checked, so that tests can write what a reader must refuse.
class GgufWriter {
 public:
  GgufWriter& set_u32(std::string_view key, uint32_t value);
  GgufWriter& set_u64(std::string_view key, uint64_t value);
  GgufWriter& set_i32(std::string_view key, int32_t value);
  GgufWriter& set_f32(std::string_view key, float value);
  GgufWriter& set_bool(std::string_view key, bool value);
  GgufWriter& set_string(std::string_view key, std::string_view value);
  GgufWriter& set_strings(std::string_view key, const std::vector<std::string>& values);
  GgufWriter& set_i32s(std::string_view key, const std::vector<int32_t>& values);
  /// A value of any type, given as its bytes in the file.
  GgufWriter& set_raw(std::string_view key, uint32_t type, std::string_view payload);

  /// `shape` slowest dimension first ([out, in]), as everywhere in Quire; written in GGUF's order.
  /// `data` holds the tensor as `dtype` stores it.
  GgufWriter& add_tensor(std::string_view name, DType dtype, const std::vector<int64_t>& shape,
                         std::span<const std::byte> data);
  GgufWriter& add_f32(std::string_view name, const std::vector<int64_t>& shape,
                      const std::vector<float>& values);
  /// A tensor entry with this type number and this offset, whatever they are.
  GgufWriter& add_raw_tensor(std::string_view name, uint32_t type_id,
                             const std::vector<uint64_t>& dims, uint64_t offset,
                             std::span<const std::byte> data);

  GgufWriter& set_version(uint32_t version);
  std::vector<std::byte> bytes() const;
  /// Throws LoadError when the file cannot be written.
  void write(const std::string& path) const;

 private:
  std::string pairs_;
  std::string infos_;
  std::string data_;
  uint64_t num_pairs_ = 0;
  uint64_t num_tensors_ = 0;
  uint32_t version_ = 3;
};

}  // namespace quire::checkpoint::testing
