#include "quire/text/tokenizer/byte_alphabet.h"

#include <array>

#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

// Latin-1's printable bytes stand for themselves; the others, in order, for U+0100 and up.
bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

constexpr size_t kAlphabetEnd = 0x144;  // one past the last character

struct Alphabet {
  std::array<std::string, 256> character;
  std::array<int16_t, kAlphabetEnd> byte_of;  // -1: not in the alphabet

  Alphabet() {
    byte_of.fill(-1);
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const unsigned value = stands_for_itself(byte) ? byte : next++;
      byte_of[value] = static_cast<int16_t>(byte);
      if (value >= 0x80) character[byte] += static_cast<char>(0xC0 | (value >> 6));
      character[byte] += static_cast<char>(value < 0x80 ? value : 0x80 | (value & 0x3F));
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet value;
  return value;
}

}  // namespace

std::string_view byte_character(uint8_t byte) {
  return alphabet().character[byte];
}

std::string to_byte_characters(std::string_view bytes) {
  std::string content;
  content.reserve(bytes.size());
  for (const char byte : bytes) content += byte_character(static_cast<uint8_t>(byte));
  return content;
}

bool append_bytes_of(std::string_view content, std::string& bytes) {
  const auto& byte_of = alphabet().byte_of;
  const size_t before = bytes.size();
  for (size_t at = 0; at < content.size();) {
    const CodePoint point = code_point_at(content, at);
    if (point.value >= kAlphabetEnd || byte_of[point.value] < 0) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(byte_of[point.value]);
    at += point.length;
  }
  return true;
}

}  // namespace quire::text
