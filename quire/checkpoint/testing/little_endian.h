// Puts numbers into files that tests write.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace quire::checkpoint::testing {

/// Appends the value's bytes; the machines Quire runs on are little-endian, as the files are.
template <typename T>
void append(std::string& out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

template <typename T>
std::string little_endian(T value) {
  std::string out;
  append(out, value);
  return out;
}

std::vector<std::byte> to_bytes(std::string_view text);

/// Throws LoadError when the file cannot be written.
void write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace quire::checkpoint::testing
