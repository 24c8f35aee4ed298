#include "quire/text/chat_template/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "quire/text/chat_template/casing_table.h"

namespace quire::text::jinja {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kFinalSigma = 0x3C2;

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

void append_mapped(std::string& out, const char32_t (&mapped)[3]) {
  for (char32_t c : mapped) {
    if (c != 0) append_utf8(out, c);
  }
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (const SpecialCasing* row = find_special_casing(c)) {
    append_mapped(out, row->upper);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (c < 0x80) {
    append_upper(out, c);
  } else if (const SpecialCasing* row = find_special_casing(c)) {
    append_mapped(out, row->title);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019;
  }
}

/// Unicode's Final_Sigma: a cased letter before and none after, case-ignorable ones skipped.
bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  bool cased_before = false;
  while (begin > 0) {
    const char32_t c = decode_utf8_before(text, begin);
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  while (end < text.size()) {
    const char32_t c = decode_utf8(text, end);
    if (is_case_ignorable(c)) continue;
    return !is_cased(c);
  }
  return true;
}

/// Appends the lower case of the code point in [begin, end) of `text`.
void append_lower(std::string& out, std::string_view text, size_t begin, size_t end) {
  size_t position = begin;
  const char32_t c = decode_utf8(text, position);
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == kCapitalSigma) {
    append_utf8(out, is_final_sigma(text, begin, end) ? kFinalSigma : kSmallSigma);
  } else if (const SpecialCasing* row = find_special_casing(c)) {
    append_mapped(out, row->lower);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

template <typename Matches>
std::string_view strip_if(std::string_view text, StripSide side, Matches matches) {
  size_t begin = 0;
  size_t end = text.size();
  while (side != StripSide::kRight && begin < end) {
    size_t next = begin;
    if (!matches(decode_utf8(text, next))) break;
    begin = next;
  }
  while (side != StripSide::kLeft && end > begin) {
    size_t previous = end;
    if (!matches(decode_utf8_before(text, previous))) break;
    end = std::max(previous, begin);
  }
  return text.substr(begin, end - begin);
}

}  // namespace

char32_t decode_utf8(std::string_view text, size_t& position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) {
    ++position;
    return byte;
  }
  utf8proc_int32_t code_point = 0;
  const auto length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + position),
                       static_cast<utf8proc_ssize_t>(text.size() - position), &code_point);
  if (length <= 0) {
    ++position;
    return kReplacement;
  }
  position += static_cast<size_t>(length);
  return static_cast<char32_t>(code_point);
}

char32_t decode_utf8_before(std::string_view text, size_t& end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  size_t position = begin;
  const char32_t c = decode_utf8(text, position);
  if (position == end) {
    end = begin;
    return c;
  }
  --end;
  return kReplacement;
}

void append_utf8(std::string& out, char32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

bool is_valid_utf8(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const size_t begin = position;
    if (decode_utf8(text, position) == kReplacement && position - begin == 1) return false;
  }
  return true;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t position = 0; position < text.size(); ++count) decode_utf8(text, position);
  return count;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t position = 0;
  for (; index > 0 && position < text.size(); --index) decode_utf8(text, position);
  return position;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
  if (is_decimal(c)) return true;
  return c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) ||
         (c >= 0x2474 && c <= 0x247C) || (c >= 0x2488 && c <= 0x2490);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_lower(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0;
}

bool is_upper(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0;
}

bool is_titlecase(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_cased(char32_t c) {
  return is_lower(c) || is_upper(c) || is_titlecase(c);
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) append_upper(out, decode_utf8(text, position));
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    decode_utf8(text, position);
    append_lower(out, text, begin, position);
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool after_cased = false;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = decode_utf8(text, position);
    if (after_cased) {
      append_lower(out, text, begin, position);
    } else {
      append_title(out, c);
    }
    after_cased = is_cased(c);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size());
  size_t position = 0;
  append_title(out, decode_utf8(text, position));
  while (position < text.size()) {
    const size_t begin = position;
    decode_utf8(text, position);
    append_lower(out, text, begin, position);
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = decode_utf8(text, position);
    if (is_upper(c)) {
      append_lower(out, text, begin, position);
    } else if (is_lower(c)) {
      append_upper(out, c);
    } else {
      append_utf8(out, c);
    }
  }
  return out;
}

std::string_view strip(std::string_view text, StripSide side) {
  return strip_if(text, side, [](char32_t c) { return is_space(c); });
}

std::string_view strip(std::string_view text, StripSide side, std::string_view characters) {
  return strip_if(text, side, [characters](char32_t c) {
    for (size_t position = 0; position < characters.size();) {
      if (decode_utf8(characters, position) == c) return true;
    }
    return false;
  });
}

}  // namespace quire::text::jinja
