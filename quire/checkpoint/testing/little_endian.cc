#include "quire/checkpoint/testing/little_endian.h"

#include <fstream>

#include "quire/base/error.h"

namespace quire::checkpoint::testing {

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw LoadError(path, "cannot be written");
}

}  // namespace quire::checkpoint::testing
