#include "quire/checkpoint/byte_cursor.h"

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::checkpoint {

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string safe;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      safe += fmt::format("\\x{:02x}", byte);
    } else {
      safe += c;
    }
  }
  if (text.size() > kLongest) safe += "...";
  return safe;
}

std::span<const std::byte> ByteCursor::take(uint64_t count, std::string_view field) {
  if (count > remaining()) {
    throw LoadError(file_, printable(field), fmt::format("{} bytes at offset {}", count, position_),
                    fmt::format("{} before the end of the file", remaining()));
  }
  const auto part = bytes_.subspan(position_, count);
  position_ += count;
  return part;
}

std::string_view ByteCursor::read_string(std::string_view field) {
  const auto length = read<uint64_t>(field);
  const auto part = take(length, field);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

}  // namespace quire::checkpoint
