// Unicode over code points: UTF-8 decoding, character classes and case mapping as Python's str has
// them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quire::text::jinja {

/// The code point at byte `position`, which advances past it; a malformed byte is U+FFFD, one byte
/// long.
char32_t decode_utf8(std::string_view text, size_t& position);
/// The code point that ends at byte `end`, which moves to its first byte.
char32_t decode_utf8_before(std::string_view text, size_t& end);
void append_utf8(std::string& out, char32_t code_point);
bool is_valid_utf8(std::string_view text);
/// True when every byte is below 128.
bool is_ascii(std::string_view text);

size_t count_code_points(std::string_view text);
/// Byte offset of code point `index`, or text.size() when there are fewer.
size_t byte_offset(std::string_view text, size_t index);

bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
inline bool is_alnum(char32_t c) {
  return is_alpha(c) || is_numeric(c);
}
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_titlecase(char32_t c);
bool is_cased(char32_t c);
/// str.isprintable: repr() writes such a character as itself.
bool is_printable(char32_t c);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// str.title: a cased character after an uncased one in title case, all others in lower case.
std::string to_title(std::string_view text);
/// str.capitalize: the first character in title case, the rest in lower case.
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);

enum class StripSide { kLeft, kRight, kBoth };
/// str.strip and its sides: removes whitespace.
std::string_view strip(std::string_view text, StripSide side);
/// The same, removing any of the code points in `characters`.
std::string_view strip(std::string_view text, StripSide side, std::string_view characters);

}  // namespace quire::text::jinja
