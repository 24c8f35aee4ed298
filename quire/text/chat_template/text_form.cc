#include "quire/text/chat_template/text_form.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

void append_items(Runtime& runtime, const std::vector<Datum>& items, std::string& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(runtime, items[i], out);
  }
}

void append_dict(Runtime& runtime, const DictObject& dict, std::string& out) {
  out += '{';
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(runtime, dict.entries[i].first, out);
    out += ": ";
    append_repr(runtime, dict.entries[i].second, out);
  }
  out += '}';
}

void append_view(Runtime& runtime, const Datum& value, std::string& out) {
  const auto& view = value.as<DictViewObject>();
  out += type_name(value);
  out += "([";
  bool first = true;
  for (const auto& [key, item] : view.dict->entries) {
    if (!first) out += ", ";
    first = false;
    switch (view.part) {
      case DictViewObject::Part::kKeys:
        append_repr(runtime, key, out);
        break;
      case DictViewObject::Part::kValues:
        append_repr(runtime, item, out);
        break;
      case DictViewObject::Part::kItems:
        out += '(';
        append_repr(runtime, key, out);
        out += ", ";
        append_repr(runtime, item, out);
        out += ')';
        break;
    }
  }
  out += "])";
}

void append_container(Runtime& runtime, const Datum& value, std::string& out) {
  const DepthGuard guard(runtime.meter());
  switch (value.type()) {
    case Type::kList:
      out += '[';
      append_items(runtime, value.as<ListObject>().items, out);
      out += ']';
      break;
    case Type::kTuple: {
      const auto& items = value.as<ListObject>().items;
      out += '(';
      append_items(runtime, items, out);
      out += items.size() == 1 ? ",)" : ")";
      break;
    }
    case Type::kDict:
      append_dict(runtime, value.as<DictObject>(), out);
      break;
    case Type::kDictView:
      append_view(runtime, value, out);
      break;
    case Type::kNamespace:
      out += "<Namespace ";
      append_dict(runtime, *value.as<NamespaceObject>().attributes, out);
      out += '>';
      break;
    default:
      break;
  }
}

void append_range(const RangeObject& range, std::string& out) {
  out += fmt::format("range({}, {}", range.start, range.stop);
  if (range.step != 1) out += fmt::format(", {}", range.step);
  out += ')';
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  // d.ddde[+-]xx -> its digits and its exponent
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  const char* first = text.data() + e + 1;
  if (*first == '+') ++first;
  std::from_chars(first, end, exponent);
  std::string sign;
  std::string digits;
  for (char c : text.substr(0, e)) {
    if (c == '-') sign = "-";
    if (c >= '0' && c <= '9') digits += c;
  }
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    if (count > 1) digits.insert(1, ".");
    return fmt::format("{}{}e{}{:02}", sign, digits, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  if (count <= exponent + 1) {
    return sign + digits + std::string(static_cast<size_t>(exponent) + 1 - digits.size(), '0') +
           ".0";
  }
  digits.insert(static_cast<size_t>(exponent) + 1, ".");
  return sign + digits;
}

void append_quoted(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = decode_utf8(text, position);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(begin, position - begin);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  out += quote;
}

void append_str(Runtime& runtime, const Datum& value, std::string& out) {
  if (value.is_string()) {
    runtime.meter().require(out.size() + text_of(value).size());
    runtime.meter().step_bytes(text_of(value).size());
    out += text_of(value);
  } else if (!value.is_undefined()) {
    append_repr(runtime, value, out);
  }
}

void append_repr(Runtime& runtime, const Datum& value, std::string& out) {
  runtime.meter().step();
  runtime.meter().require(out.size());
  switch (value.type()) {
    case Type::kMissing:
    case Type::kUndefined:
      out += "Undefined";
      break;
    case Type::kNone:
      out += "None";
      break;
    case Type::kBool:
      out += value.as_bool() ? "True" : "False";
      break;
    case Type::kInt:
      out += std::to_string(value.as_int());
      break;
    case Type::kFloat:
      out += float_repr(value.as_float());
      break;
    case Type::kString:
      runtime.meter().step_bytes(text_of(value).size());
      if (is_markup(value)) out += "Markup(";
      append_quoted(text_of(value), out);
      if (is_markup(value)) out += ')';
      break;
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
    case Type::kDictView:
    case Type::kNamespace:
      append_container(runtime, value, out);
      break;
    case Type::kRange:
      append_range(value.as<RangeObject>(), out);
      break;
    case Type::kBuiltin:
      out += fmt::format("<function {}>", value.as_builtin()->name);
      break;
    default:
      out += fmt::format("<{}>", type_name(value));
      break;
  }
}

std::string to_str(Runtime& runtime, const Datum& value) {
  std::string out;
  append_str(runtime, value, out);
  return out;
}

std::string to_repr(Runtime& runtime, const Datum& value) {
  std::string out;
  append_repr(runtime, value, out);
  return out;
}

Datum as_string(Runtime& runtime, const Datum& value) {
  return value.is_string() ? value : runtime.string(to_str(runtime, value));
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
        break;
    }
  }
  return out;
}

}  // namespace quire::text::jinja
