// SafetensorsWriter: writes small .safetensors files, single or sharded, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/tensor/dtype.h"

namespace quire::checkpoint::testing {

/// Tensors lie in the order they were added, without gaps; names must need no JSON escapes.
class SafetensorsWriter {
 public:
  /// `data` holds the tensor row-major, `shape` slowest dimension first.
  SafetensorsWriter& add(std::string_view name, DType dtype, const std::vector<int64_t>& shape,
                         std::span<const std::byte> data);
  SafetensorsWriter& add_f32(std::string_view name, const std::vector<int64_t>& shape,
                             const std::vector<float>& values);

  std::vector<std::byte> bytes() const;
  /// Throws LoadError when the file cannot be written.
  void write(const std::string& path) const;
  const std::vector<std::string>& names() const { return names_; }

  /// A file of this header and this data, whatever they are.
  static std::vector<std::byte> raw(std::string_view header, std::string_view data);

 private:
  std::vector<std::string> names_;
  std::string entries_;
  std::string data_;
};

/// One shard: its file name and its tensors.
struct Shard {
  std::string file;
  SafetensorsWriter writer;
};

/// Writes every shard and model.safetensors.index.json into `folder`.
void write_shards(const std::string& folder, const std::vector<Shard>& shards);

}  // namespace quire::checkpoint::testing
