#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "quire/text/chat_template/format.h"
#include "quire/text/chat_template/lookup.h"
#include "quire/text/chat_template/text_form.h"

namespace quire::text::jinja {
namespace {

/// One text.format(arguments).
class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Arguments& arguments)
      : runtime_(runtime), arguments_(arguments) {}

  std::string run(std::string_view text, int depth);

 private:
  std::string replace_field(std::string_view field, int depth);
  Datum field_value(std::string_view name);
  Datum first_value(std::string_view name);
  Datum positional(size_t index) const {
    if (index >= arguments_.positional.size()) {
      throw RenderError(
          fmt::format("Replacement index {} out of range for positional args tuple", index));
    }
    return arguments_.positional[index];
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  size_t next_index_ = 0;
  bool automatic_ = false;
  bool manual_ = false;
};

bool parse_index(std::string_view text, int64_t& index) {
  if (text.empty() ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return false;
  }
  return std::from_chars(text.data(), text.data() + text.size(), index).ec == std::errc();
}

/// Where the field that begins at `begin` ends: at the brace that closes it.
size_t field_end(std::string_view text, size_t begin) {
  int depth = 1;
  bool in_brackets = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_brackets) {
      in_brackets = c != ']';
    } else if (c == '[' && depth == 1) {
      in_brackets = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i;
    }
  }
  throw RenderError("expected '}' before end of string");
}

Datum BraceFormatter::first_value(std::string_view name) {
  int64_t index = 0;
  if (name.empty()) {
    if (manual_) {
      throw RenderError(
          "cannot switch from manual field specification to automatic field numbering");
    }
    automatic_ = true;
    return positional(next_index_++);
  }
  if (parse_index(name, index)) {
    if (automatic_) {
      throw RenderError(
          "cannot switch from automatic field numbering to manual field specification");
    }
    manual_ = true;
    return positional(static_cast<size_t>(index));
  }
  const Datum* found = arguments_.find(name);
  if (found == nullptr) throw RenderError(fmt::format("KeyError: '{}'", name));
  return *found;
}

/// name, then any number of .attribute and [element].
Datum BraceFormatter::field_value(std::string_view name) {
  size_t position = std::min(name.find_first_of(".["), name.size());
  Datum value = first_value(name.substr(0, position));
  while (position < name.size()) {
    if (name[position] == '.') {
      const size_t end = std::min(name.find_first_of(".[", position + 1), name.size());
      value = get_attribute(runtime_, value, name.substr(position + 1, end - position - 1));
      position = end;
    } else if (name[position] == '[') {
      const size_t end = name.find(']', position);
      if (end == std::string_view::npos) throw RenderError("Missing ']' in format string");
      const std::string_view key = name.substr(position + 1, end - position - 1);
      int64_t index = 0;
      value = get_item(
          runtime_, value,
          parse_index(key, index) ? Datum::integer(index) : runtime_.string(std::string(key)));
      position = end + 1;
    } else {
      throw RenderError("Only '.' or '[' may follow ']' in format field specifier");
    }
  }
  return value;
}

std::string BraceFormatter::replace_field(std::string_view field, int depth) {
  if (depth > 1) throw RenderError("Max string recursion exceeded");
  size_t name_end = 0;
  bool in_brackets = false;
  while (name_end < field.size()) {
    const char c = field[name_end];
    if (c == '[') in_brackets = true;
    if (c == ']') in_brackets = false;
    if (!in_brackets && (c == ':' || c == '!')) break;
    ++name_end;
  }
  Datum value = field_value(field.substr(0, name_end));
  std::string_view rest = field.substr(name_end);
  if (rest.starts_with('!')) {
    if (rest.size() < 2) throw RenderError("unmatched '{' in format spec");
    const char conversion = rest[1];
    if (conversion == 's')
      value = as_string(runtime_, value);
    else if (conversion == 'r' || conversion == 'a')
      value = runtime_.string(to_repr(runtime_, value));
    else
      throw RenderError(fmt::format("Unknown conversion specifier {}", conversion));
    rest.remove_prefix(2);
    if (!rest.empty() && rest[0] != ':')
      throw RenderError("expected ':' after conversion specifier");
  }
  const std::string spec = rest.empty() ? std::string() : run(rest.substr(1), depth + 1);
  if (spec.empty()) return to_str(runtime_, value);
  return format_value(runtime_, value, parse_format_spec(spec));
}

std::string BraceFormatter::run(std::string_view text, int depth) {
  std::string out;
  for (size_t position = 0; position < text.size();) {
    runtime_.meter().step();
    runtime_.meter().require(out.size());
    const size_t brace = std::min(text.find_first_of("{}", position), text.size());
    out += text.substr(position, brace - position);
    if (brace == text.size()) break;
    if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
      out += text[brace];
      position = brace + 2;
      continue;
    }
    if (text[brace] == '}') throw RenderError("Single '}' encountered in format string");
    if (brace + 1 >= text.size()) throw RenderError("Single '{' encountered in format string");
    const size_t end = field_end(text, brace + 1);
    out += replace_field(text.substr(brace + 1, end - brace - 1), depth);
    position = end + 1;
  }
  return out;
}

}  // namespace

Datum format_braces(Runtime& runtime, std::string_view text, const Arguments& arguments) {
  return runtime.string(BraceFormatter(runtime, arguments).run(text, 0));
}

}  // namespace quire::text::jinja
