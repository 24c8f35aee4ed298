// GgufFile: the checked contents of a GGUF file (version 2 or 3): metadata and where each tensor
// lies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/checkpoint/gguf_metadata.h"
#include "quire/tensor/dtype.h"

namespace quire::checkpoint {

/// A tensor as the file describes it: dimensions in the file's order, the contiguous one first.
struct GgufTensor {
  std::string_view name;
  DType dtype = DType::kF32;
  uint32_t num_dims = 0;
  std::array<uint64_t, 4> dims = {1, 1, 1, 1};
  std::span<const std::byte> bytes;
};

/// Points into `bytes`, which must outlive it. Every count, size, offset and name is checked
/// against the bytes at hand before anything is allocated for it; throws LoadError naming file and
/// field.
class GgufFile {
 public:
  GgufFile(std::span<const std::byte> bytes, const std::string& file);

  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const std::string& file() const { return metadata_.file(); }
  /// Null when there is none of that name.
  const GgufTensor* find(std::string_view name) const;

 private:
  struct Header {
    ByteCursor cursor;
    uint64_t num_tensors;
    uint64_t num_pairs;
  };

  GgufFile(Header header, std::span<const std::byte> bytes, std::string file);
  static Header read_header(std::span<const std::byte> bytes, const std::string& file);
  void read_tensors(ByteCursor& cursor, uint64_t count, std::span<const std::byte> bytes);
  void reject_overlap() const;

  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;  // by name
};

}  // namespace quire::checkpoint
