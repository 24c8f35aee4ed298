// Parses the JSON header of a .safetensors file strictly: known keys only, each once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::checkpoint {

/// One entry of the header, not yet compared with the file's bytes.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> data_offsets;  // [begin, end), from the end of the header
};

/// Throws LoadError naming `file` and the place for malformed JSON, nesting deeper than the format
/// has, unknown, missing or repeated keys, and values of a wrong type. The order is the file's.
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view json,
                                                       const std::string& file);

}  // namespace quire::checkpoint
