#include "quire/text/chat_template/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "quire/text/chat_template/text_form.h"
#include "quire/text/chat_template/text_split.h"

namespace quire::text::jinja {
namespace {

constexpr int64_t kMaxPrecision = 1000;

bool is_align(char32_t c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

int64_t parse_count(std::string_view text, size_t& position) {
  int64_t value = 0;
  const char* begin = text.data() + position;
  const auto result = std::from_chars(begin, text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) throw RenderError("format: number too large");
  position += static_cast<size_t>(result.ptr - begin);
  return value;
}

bool is_digit_at(std::string_view text, size_t position) {
  return position < text.size() && text[position] >= '0' && text[position] <= '9';
}

/// Pads `sign` + `digits` to the width; '=' puts the fill between them.
std::string pad_number(Runtime& runtime, const std::string& sign, const std::string& digits,
                       const FormatSpec& spec) {
  if (spec.align != '=') {
    const Alignment alignment = spec.align == '<'   ? Alignment::kLeft
                                : spec.align == '^' ? Alignment::kCenter
                                                    : Alignment::kRight;
    const Datum text = runtime.string(sign + digits);
    if (spec.align == '^') {  // format() puts the odd blank to the right
      const int64_t missing = spec.width - static_cast<int64_t>(string_length(text));
      const Datum left =
          runtime.string(pad_text(runtime, text, spec.width - (missing > 0 ? (missing + 1) / 2 : 0),
                                  spec.fill, Alignment::kRight));
      return pad_text(runtime, left, spec.width, spec.fill, Alignment::kLeft);
    }
    return pad_text(runtime, text, spec.width, spec.fill, alignment);
  }
  const Datum text = runtime.string(digits);
  return sign + pad_text(runtime, text, spec.width - static_cast<int64_t>(sign.size()), spec.fill,
                         Alignment::kRight);
}

std::string sign_text(bool negative, char sign) {
  if (negative) return "-";
  return sign == '+' || sign == ' ' ? std::string(1, sign) : std::string();
}

/// Puts `separator` between every `size` digits of the leading run of digits.
std::string group_digits(const std::string& digits, char separator, size_t size) {
  size_t whole = 0;
  while (whole < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[whole])) != 0 &&
         (size == 4 || (digits[whole] >= '0' && digits[whole] <= '9'))) {
    ++whole;
  }
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string float_digits(double magnitude, const FormatSpec& spec) {
  if (spec.precision > kMaxPrecision) throw RenderError("format: precision too large");
  if (!std::isfinite(magnitude)) {
    const std::string word = std::isnan(magnitude) ? "nan" : "inf";
    return spec.type == 'F' || spec.type == 'E' || spec.type == 'G'
               ? (word == "nan" ? "NAN" : "INF")
               : word + (spec.type == '%' ? "%" : "");
  }
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  const auto printed = [&](const char* format, double value, int digits) {
    std::string out(1400, '\0');
    const int length = std::snprintf(out.data(), out.size(), format, digits, value);
    out.resize(static_cast<size_t>(std::clamp(length, 0, 1399)));
    return out;
  };
  switch (spec.type) {
    case 'e':
      return printed(spec.alternate ? "%#.*e" : "%.*e", magnitude, precision);
    case 'E':
      return printed(spec.alternate ? "%#.*E" : "%.*E", magnitude, precision);
    case 'f':
    case 'F':
      return printed(spec.alternate ? "%#.*f" : "%.*f", magnitude, precision);
    case 'G':
      return printed(spec.alternate ? "%#.*G" : "%.*G", magnitude, precision);
    case '%':
      return printed("%.*f", magnitude * 100, precision) + "%";
    case 'g':
    case 'n':
      return printed(spec.alternate ? "%#.*g" : "%.*g", magnitude, precision);
    default:
      break;
  }
  if (spec.precision < 0) return float_repr(magnitude);
  std::string out = printed("%.*g", magnitude, precision);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string format_float(Runtime& runtime, double value, const FormatSpec& spec) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string digits = float_digits(negative ? -value : value, spec);
  if (spec.grouping != 0) digits = group_digits(digits, spec.grouping, 3);
  return pad_number(runtime, sign_text(negative, spec.sign), digits, spec);
}

std::string format_int(Runtime& runtime, int64_t value, const FormatSpec& spec) {
  const bool negative = value < 0;
  const uint64_t magnitude =
      negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string digits;
  std::string prefix;
  switch (spec.type) {
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      prefix = "0b";
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      prefix = "0o";
      break;
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      prefix = "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      prefix = "0X";
      break;
    case 'c':
      if (value < 0 || value > 0x10FFFF) throw RenderError("%c arg not in range(0x110000)");
      append_utf8(digits, static_cast<char32_t>(value));
      return pad_number(runtime, {}, digits, spec);
    default:
      digits = fmt::format("{}", magnitude);
      break;
  }
  if (spec.precision >= 0) {  // of `%` formatting: at least so many digits
    if (spec.precision > kMaxPrecision) throw RenderError("format: precision too large");
    const auto wanted = static_cast<size_t>(spec.precision);
    if (digits.size() < wanted) digits.insert(0, wanted - digits.size(), '0');
  }
  if (spec.grouping != 0) digits = group_digits(digits, spec.grouping, prefix.empty() ? 3 : 4);
  const std::string sign = sign_text(negative, spec.sign) + (spec.alternate ? prefix : "");
  return pad_number(runtime, sign, digits, spec);
}

std::string format_text(Runtime& runtime, const Datum& text, const FormatSpec& spec) {
  std::string_view shown = text_of(text);
  if (spec.precision >= 0) {
    shown = shown.substr(0, byte_offset(shown, static_cast<size_t>(spec.precision)));
  }
  FormatSpec padded = spec;
  if (padded.align == 0) padded.align = '<';
  return pad_number(runtime, {}, std::string(shown), padded);
}

bool is_float_type(char type) {
  return type != 0 && std::string_view("eEfFgG%").find(type) != std::string_view::npos;
}

bool is_int_type(char type) {
  return type == 0 || std::string_view("bcdoxXn").find(type) != std::string_view::npos;
}

}  // namespace

FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  size_t position = 0;
  if (!text.empty()) {
    size_t after = 0;
    const char32_t first = decode_utf8(text, after);
    if (after < text.size() && is_align(static_cast<unsigned char>(text[after]))) {
      spec.fill = first;
      spec.align = text[after];
      position = after + 1;
    } else if (is_align(first)) {
      spec.align = text[0];
      position = 1;
    }
  }
  const auto take = [&](char c) {
    if (position >= text.size() || text[position] != c) return false;
    ++position;
    return true;
  };
  if (take('+'))
    spec.sign = '+';
  else if (take(' '))
    spec.sign = ' ';
  else
    take('-');
  spec.alternate = take('#');
  if (take('0') && spec.align == 0) {
    spec.fill = U'0';
    spec.align = '=';
  }
  if (is_digit_at(text, position)) spec.width = parse_count(text, position);
  if (take(','))
    spec.grouping = ',';
  else if (take('_'))
    spec.grouping = '_';
  if (take('.')) {
    if (!is_digit_at(text, position)) throw RenderError("Format specifier missing precision");
    spec.precision = parse_count(text, position);
  }
  if (position < text.size()) spec.type = text[position++];
  if (position != text.size()) throw RenderError("Invalid format specifier");
  return spec;
}

std::string format_value(Runtime& runtime, const Datum& value, const FormatSpec& spec) {
  if (value.is_string()) {
    if (spec.type != 0 && spec.type != 's') {
      throw RenderError(
          fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
    }
    if (spec.align == '=' && spec.fill != U'0') {
      throw RenderError("'=' alignment not allowed in string format specifier");
    }
    FormatSpec text_spec = spec;
    if (spec.align == '=') text_spec.align = '<';
    return format_text(runtime, value, text_spec);
  }
  if (value.is_integral() && is_int_type(spec.type)) {
    if (spec.precision >= 0) throw RenderError("Precision not allowed in integer format specifier");
    return format_int(runtime, value.as_int(), spec);
  }
  if (value.is_number() && (is_float_type(spec.type) || spec.type == 0 || spec.type == 'n')) {
    return format_float(runtime, value.to_double(), spec);
  }
  check_defined(value);
  throw RenderError(
      fmt::format("unsupported format string passed to {}.__format__", type_name(value)));
}

namespace {

/// One `text % values`.
class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, std::string_view text, const Datum& values)
      : runtime_(runtime), text_(text), values_(values) {}
  std::string run();

 private:
  struct Placeholder {
    FormatSpec spec;
    bool left = false;
    bool zero = false;
    Datum keyed;  // the value of %(key), or missing
  };

  const Datum& next_value();
  Placeholder parse();
  int64_t parse_star_or_count(bool& negative);
  Datum keyed_value();
  std::string convert(const Placeholder& placeholder, const Datum& value);
  std::string convert_number(const FormatSpec& spec, const Datum& value);
  char current() const {
    if (position_ >= text_.size()) throw RenderError("incomplete format");
    return text_[position_];
  }

  Runtime& runtime_;
  std::string_view text_;
  const Datum& values_;
  size_t position_ = 0;
  size_t used_ = 0;
};

const Datum& PercentFormatter::next_value() {
  if (!values_.is(Type::kTuple)) {
    if (used_++ > 0) throw RenderError("not enough arguments for format string");
    return values_;
  }
  const auto& items = values_.as<ListObject>().items;
  if (used_ >= items.size()) throw RenderError("not enough arguments for format string");
  return items[used_++];
}

Datum PercentFormatter::keyed_value() {
  if (!values_.is(Type::kDict)) throw RenderError("format requires a mapping");
  int depth = 1;
  const size_t begin = ++position_;
  for (; depth > 0; ++position_) {
    if (current() == '(') ++depth;
    if (current() == ')') --depth;
  }
  const std::string_view key = text_.substr(begin, position_ - 1 - begin);
  const Datum* found = dict_find(runtime_, values_.as<DictObject>(), key);
  if (found == nullptr) throw RenderError(fmt::format("KeyError: '{}'", key));
  return *found;
}

int64_t PercentFormatter::parse_star_or_count(bool& negative) {
  negative = false;
  if (current() != '*') return is_digit_at(text_, position_) ? parse_count(text_, position_) : 0;
  ++position_;
  const Datum& value = next_value();
  if (!value.is_integral()) throw RenderError("* wants int");
  negative = value.as_int() < 0;
  return negative ? -std::max(value.as_int(), -INT64_MAX) : value.as_int();
}

PercentFormatter::Placeholder PercentFormatter::parse() {
  Placeholder result;
  if (current() == '(') result.keyed = keyed_value();
  while (true) {
    const char flag = current();
    if (flag == '-')
      result.left = true;
    else if (flag == '+')
      result.spec.sign = '+';
    else if (flag == ' ')
      result.spec.sign = result.spec.sign == '+' ? '+' : ' ';
    else if (flag == '#')
      result.spec.alternate = true;
    else if (flag == '0')
      result.zero = true;
    else
      break;
    ++position_;
  }
  bool negative = false;
  result.spec.width = parse_star_or_count(negative);
  result.left = result.left || negative;
  if (current() == '.') {
    ++position_;
    result.spec.precision = parse_star_or_count(negative);
    if (negative) result.spec.precision = 0;
  }
  while (current() == 'l' || current() == 'h' || current() == 'L') ++position_;
  result.spec.type = text_[position_++];
  return result;
}

std::string PercentFormatter::convert_number(const FormatSpec& spec, const Datum& value) {
  check_defined(value);
  if (is_float_type(spec.type)) {
    if (!value.is_number()) {
      throw RenderError(fmt::format("must be real number, not {}", type_name(value)));
    }
    return format_float(runtime_, value.to_double(), spec);
  }
  const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
  if (!value.is_integral() && !(decimal && value.is(Type::kFloat))) {
    throw RenderError(
        fmt::format("%{} format: an integer is required, not {}", spec.type, type_name(value)));
  }
  if (value.is_integral()) return format_int(runtime_, value.as_int(), spec);
  if (!(std::fabs(value.as_float()) < 9.2e18)) throw RenderError("cannot convert float to integer");
  return format_int(runtime_, static_cast<int64_t>(value.as_float()), spec);
}

std::string PercentFormatter::convert(const Placeholder& placeholder, const Datum& value) {
  FormatSpec spec = placeholder.spec;
  spec.align = placeholder.left ? '<' : '>';
  switch (spec.type) {
    case 's':
    case 'r':
    case 'a': {
      std::string shown;
      if (spec.type == 's')
        append_str(runtime_, value, shown);
      else
        append_repr(runtime_, value, shown);
      return format_text(runtime_, runtime_.string(std::move(shown)), spec);
    }
    case 'c':
      if (value.is_string()) {
        if (string_length(value) != 1) throw RenderError("%c requires int or char");
        spec.precision = -1;
        return format_text(runtime_, value, spec);
      }
      break;
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (placeholder.zero && !placeholder.left) {
        spec.fill = U'0';
        spec.align = '=';
      }
      break;
    default:
      throw RenderError(fmt::format("unsupported format character '{}'", spec.type));
  }
  return convert_number(spec, value);
}

std::string PercentFormatter::run() {
  std::string out;
  while (position_ < text_.size()) {
    runtime_.meter().step();
    runtime_.meter().require(out.size());
    const size_t percent = std::min(text_.find('%', position_), text_.size());
    out += text_.substr(position_, percent - position_);
    position_ = percent + 1;
    if (percent == text_.size()) break;
    const Placeholder placeholder = parse();
    if (placeholder.spec.type == '%') {
      out += '%';
      continue;
    }
    out += convert(placeholder, placeholder.keyed.is_missing() ? next_value() : placeholder.keyed);
  }
  // Python lets whatever can be subscripted go unused, except tuples and strings.
  const bool subscriptable = values_.is(Type::kDict) || values_.is(Type::kList) ||
                             values_.is(Type::kRange) || values_.is_undefined();
  const bool all_used = values_.is(Type::kTuple) ? used_ == values_.as<ListObject>().items.size()
                                                 : used_ > 0 || subscriptable;
  if (!all_used) throw RenderError("not all arguments converted during string formatting");
  return out;
}

}  // namespace

Datum format_percent(Runtime& runtime, const Datum& text, const Datum& values) {
  return runtime.string(PercentFormatter(runtime, text_of(text), values).run());
}

}  // namespace quire::text::jinja
