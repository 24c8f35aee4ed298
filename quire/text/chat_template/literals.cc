#include "quire/text/chat_template/literals.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "quire/text/chat_template/render_error.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

bool is_digit_of(char c, int base) {
  return digit_value(c) < base;
}

/// Past the digits at `at`, single underscores between them included.
size_t skip_digits(std::string_view s, size_t at, int base) {
  while (at < s.size()) {
    if (is_digit_of(s[at], base)) {
      ++at;
    } else if (s[at] == '_' && at + 1 < s.size() && is_digit_of(s[at + 1], base)) {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

bool is_digit_at(std::string_view s, size_t at) {
  return at < s.size() && is_digit_of(s[at], 10);
}

/// The end of the float at `begin`, or `begin` when there is none: digits with a fraction, an
/// exponent, or both.
size_t float_end(std::string_view s, size_t begin) {
  if (!is_digit_at(s, begin) || (begin > 0 && s[begin - 1] == '.')) return begin;
  size_t end = skip_digits(s, begin, 10);
  bool is_float = false;
  if (end < s.size() && s[end] == '.' && is_digit_at(s, end + 1)) {
    end = skip_digits(s, end + 1, 10);
    is_float = true;
  }
  if (end < s.size() && (s[end] == 'e' || s[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < s.size() && (s[exponent] == '+' || s[exponent] == '-')) ++exponent;
    if (is_digit_at(s, exponent)) {
      end = skip_digits(s, exponent, 10);
      is_float = true;
    }
  }
  return is_float ? end : begin;
}

/// The end of the integer at `begin`; sets its base.
size_t integer_end(std::string_view s, size_t begin, int& base) {
  base = 10;
  if (!is_digit_at(s, begin)) return begin;
  if (s[begin] != '0') return skip_digits(s, begin, 10);
  if (begin + 1 < s.size()) {
    const char letter = s[begin + 1];
    const int prefix = letter == 'b' || letter == 'B'   ? 2
                       : letter == 'o' || letter == 'O' ? 8
                       : letter == 'x' || letter == 'X' ? 16
                                                        : 0;
    if (prefix != 0) {
      size_t digits = begin + 2;
      if (digits < s.size() && s[digits] == '_') ++digits;
      if (digits < s.size() && is_digit_of(s[digits], prefix)) {
        base = prefix;
        return skip_digits(s, digits, prefix);
      }
    }
  }
  return skip_digits(s, begin, 1);  // a zero may be followed by zeros only
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '_') out += c;
  }
  return out;
}

/// Reads exactly `count` hexadecimal digits.
char32_t read_hex(std::string_view inside, size_t& position, size_t count, uint32_t line) {
  char32_t value = 0;
  for (size_t i = 0; i < count; ++i, ++position) {
    if (position >= inside.size() || !is_digit_of(inside[position], 16)) {
      throw SyntaxError(line, "truncated escape in a string");
    }
    value = value * 16 + static_cast<char32_t>(digit_value(inside[position]));
  }
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return 0;
  }
}

void append_code_point(std::string& out, char32_t c, uint32_t line) {
  if (c > 0x10FFFF) throw SyntaxError(line, "illegal Unicode character in a string");
  if (c >= 0xD800 && c <= 0xDFFF) throw SyntaxError(line, "surrogates are not allowed in a string");
  append_utf8(out, c);
}

/// Appends what the escape at `position` (after its backslash) stands for.
void append_escape(std::string& out, std::string_view inside, size_t& position, uint32_t line) {
  const char c = inside[position++];
  if (const char plain = simple_escape(c)) {
    out += plain;
  } else if (c == 'x') {
    append_code_point(out, read_hex(inside, position, 2, line), line);
  } else if (c == 'u') {
    append_code_point(out, read_hex(inside, position, 4, line), line);
  } else if (c == 'U') {
    append_code_point(out, read_hex(inside, position, 8, line), line);
  } else if (c == 'N') {
    throw SyntaxError(line, "\\N{...} escapes are not supported");
  } else if (is_digit_of(c, 8)) {
    auto value = static_cast<char32_t>(c - '0');
    for (int i = 0; i < 2 && position < inside.size() && is_digit_of(inside[position], 8); ++i) {
      value = value * 8 + static_cast<char32_t>(inside[position++] - '0');
    }
    append_code_point(out, value, line);
  } else if (c != '\n') {  // an escaped newline is nothing; any other escape stays as it is
    out += '\\';
    out += c;
  }
}

}  // namespace

bool scan_number(std::string_view source, size_t& position, uint32_t line, LexedToken& token) {
  if (const size_t end = float_end(source, position); end != position) {
    token.kind = Token::kFloat;
    token.text = std::string(source.substr(position, end - position));
    token.floating = std::strtod(without_underscores(token.text).c_str(), nullptr);
    position = end;
    return true;
  }
  int base = 10;
  const size_t end = integer_end(source, position, base);
  if (end == position) return false;
  token.kind = Token::kInteger;
  token.text = std::string(source.substr(position, end - position));
  const std::string digits = without_underscores(base == 10 ? token.text : token.text.substr(2));
  const auto result =
      std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
  if (result.ec != std::errc()) throw SyntaxError(line, "integer beyond 64 bits");
  position = end;
  return true;
}

std::string unescape(std::string_view inside, uint32_t line) {
  std::string out;
  out.reserve(inside.size());
  for (size_t position = 0; position < inside.size();) {
    if (inside[position] == '\\' && position + 1 < inside.size()) {
      ++position;
      append_escape(out, inside, position, line);
    } else {
      out += inside[position++];
    }
  }
  return out;
}

}  // namespace quire::text::jinja
