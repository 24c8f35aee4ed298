#include "quire/text/chat_template/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

/// Without underscores between digits; nothing when one stands elsewhere.
std::optional<std::string> drop_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() &&
                         std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 &&
                         std::isalnum(static_cast<unsigned char>(text[i + 1])) != 0;
    if (!between) return std::nullopt;
  }
  return out;
}

/// The base that a prefix such as 0x names, or 0.
int prefix_base(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 0;
  switch (digits[1]) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 0;
  }
}

bool is_float_syntax(std::string_view text) {
  size_t i = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - begin;
  };
  size_t count = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    count += digits();
  }
  if (count == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

bool is_float_word(std::string text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.erase(0, 1);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "inf" || text == "infinity" || text == "nan";
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text, int base) {
  text = strip(text, StripSide::kBoth);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const int prefix = prefix_base(text);
  if (prefix != 0 && (base == prefix || base == 0)) {
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
    base = prefix;
  } else if (base == 0) {
    base = 10;
  }
  if (base < 2 || base > 36) return std::nullopt;
  const auto digits = drop_underscores(text);
  if (!digits || digits->empty() || (*digits)[0] == '-') return std::nullopt;
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  int64_t value = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto result = std::from_chars(signed_digits.data(), end, value, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  const auto plain = drop_underscores(strip(text, StripSide::kBoth));
  if (!plain || !(is_float_syntax(*plain) || is_float_word(*plain))) return std::nullopt;
  return std::strtod(plain->c_str(), nullptr);
}

double round_float(double value, int64_t digits) {
  if (!std::isfinite(value) || value == 0) return value;
  if (digits > 330) return value;
  if (digits < -330) return std::copysign(0.0, value);
  if (digits >= 0) {
    return std::strtod(fmt::format("{:.{}f}", value, static_cast<int>(digits)).c_str(), nullptr);
  }
  const double power = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / power) * power;
}

int64_t round_int(int64_t value, int64_t digits) {
  if (digits >= 0) return value;
  if (digits < -18) return 0;
  int64_t power = 1;
  for (int64_t i = digits; i < 0; ++i) power *= 10;
  int64_t quotient = value / power;
  const int64_t rest = std::abs(value % power);
  const bool up = rest * 2 > power || (rest * 2 == power && quotient % 2 != 0);
  if (up) quotient += value < 0 ? -1 : 1;
  int64_t result = 0;
  return __builtin_mul_overflow(quotient, power, &result) ? value : result;
}

}  // namespace quire::text::jinja
