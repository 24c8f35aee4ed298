#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/format.h"
#include "quire/text/chat_template/json_dump.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/sequence.h"
#include "quire/text/chat_template/text_form.h"
#include "quire/text/chat_template/text_split.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

Datum mapped(Runtime& runtime, const Datum& input, std::string (*map)(std::string_view)) {
  const Datum text = as_string(runtime, input);
  runtime.meter().step_bytes(text_of(text).size() * 4);
  return runtime.string(map(text_of(text)), is_markup(text));
}

Datum upper(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("upper", arguments, {});
  return mapped(runtime, input, to_upper);
}

Datum lower(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("lower", arguments, {});
  return mapped(runtime, input, to_lower);
}

Datum capitalize_filter(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("capitalize", arguments, {});
  return mapped(runtime, input, capitalize);
}

/// Jinja's own title: words begin after blanks, '-' and opening brackets only.
std::string title_words(std::string_view text) {
  std::string out;
  size_t position = 0;
  while (position < text.size()) {
    const auto is_separator = [&](size_t at) {
      size_t next = at;
      const char32_t c = decode_utf8(text, next);
      return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    };
    const size_t begin = position;
    const bool separators = is_separator(begin);
    while (position < text.size() && is_separator(position) == separators) {
      decode_utf8(text, position);
    }
    size_t second = begin;
    decode_utf8(text, second);
    out += to_upper(text.substr(begin, second - begin));
    out += to_lower(text.substr(second, position - second));
  }
  return out;
}

Datum title(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("title", arguments, {});
  return mapped(runtime, input, title_words);
}

Datum trim(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("trim", arguments, {"chars"});
  const Datum text = as_string(runtime, input);
  if (bound[0] == nullptr || bound[0]->is_none()) {
    return runtime.string(std::string(strip(text_of(text), StripSide::kBoth)), is_markup(text));
  }
  check_defined(*bound[0]);
  if (!bound[0]->is_string()) throw RenderError("strip arg must be None or str");
  return runtime.string(
      std::string(strip_charged(runtime, text_of(text), StripSide::kBoth, text_of(*bound[0]))),
      is_markup(text));
}

Datum replace(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("replace", arguments, {"old", "new", "count"});
  if (bound[0] == nullptr || bound[1] == nullptr) {
    throw RenderError("replace() missing required arguments");
  }
  const Datum text = as_string(runtime, input);
  const Datum from = as_string(runtime, *bound[0]);
  const Datum to = as_string(runtime, *bound[1]);
  const int64_t count = bound[2] == nullptr || bound[2]->is_none() ? -1 : integer_or(bound[2], -1);
  return runtime.string(replace_text(runtime, text_of(text), text_of(from), text_of(to), count));
}

Datum string(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("string", arguments, {});
  return as_string(runtime, input);
}

Datum escape(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("escape", arguments, {});
  Datum text = as_string(runtime, input);
  if (is_markup(text)) return text;
  return runtime.string(escape_html(text_of(text)), true);
}

Datum force_escape(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("forceescape", arguments, {});
  return runtime.string(escape_html(to_str(runtime, input)), true);
}

Datum safe(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("safe", arguments, {});
  return runtime.string(to_str(runtime, input), true);
}

const Datum& require_string(const Datum& input, std::string_view filter) {
  check_defined(input);
  if (!input.is_string()) {
    throw RenderError(fmt::format("{}: expected a string, got {}", filter, type_name(input)));
  }
  return input;
}

Datum indent(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("indent", arguments, {"width", "first", "blank"});
  const std::string_view text = text_of(require_string(input, "indent"));
  std::string indention;
  if (bound[0] != nullptr && bound[0]->is_string()) {
    indention = text_of(*bound[0]);
  } else {
    const int64_t width = std::max<int64_t>(integer_or(bound[0], 4), 0);
    runtime.meter().require(static_cast<size_t>(width));
    indention.assign(static_cast<size_t>(width), ' ');
  }
  const bool blank = truth_or(bound[2], false);
  const std::string with_end = std::string(text) + "\n";
  std::string out = truth_or(bound[1], false) ? indention : std::string();
  bool first = true;
  for (const std::string_view line : split_lines(runtime, with_end, false)) {
    runtime.meter().step_bytes(line.size() + indention.size());
    runtime.meter().require(out.size() + line.size() + indention.size());
    if (!first) out += '\n';
    if (!first && (blank || !line.empty())) out += indention;
    out += line;
    first = false;
  }
  return runtime.string(std::move(out), is_markup(input));
}

Datum truncate(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const int64_t length = integer_or(bound[0], 255);
  const Datum end =
      bound[2] == nullptr ? runtime.borrowed_string("...") : require_string(*bound[2], "truncate");
  const int64_t leeway = bound[3] == nullptr || bound[3]->is_none() ? 5 : integer_or(bound[3], 5);
  const auto end_length = static_cast<int64_t>(string_length(end));
  if (length < end_length) {
    throw RenderError(fmt::format("expected length >= {}, got {}", end_length, length));
  }
  if (leeway < 0) throw RenderError(fmt::format("expected leeway >= 0, got {}", leeway));
  const int64_t have = length_of(input);
  if (have <= length || have - length <= leeway) return input;
  const std::string_view text = text_of(require_string(input, "truncate"));
  std::string_view kept =
      text.substr(0, byte_offset(text, static_cast<size_t>(length - end_length)));
  if (!truth_or(bound[1], false)) {
    const size_t space = kept.rfind(' ');
    if (space != std::string_view::npos) kept = kept.substr(0, space);
  }
  return runtime.string(std::string(kept) + std::string(text_of(end)));
}

Datum center(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("center", arguments, {"width"});
  const Datum text = as_string(runtime, input);
  return runtime.string(
      pad_text(runtime, text, integer_or(bound[0], 80), U' ', Alignment::kCenter));
}

Datum word_count(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("wordcount", arguments, {});
  const Datum text = as_string(runtime, input);
  runtime.meter().step_bytes(text_of(text).size());
  int64_t count = 0;
  bool in_word = false;
  for (size_t position = 0; position < text_of(text).size();) {
    const char32_t c = decode_utf8(text_of(text), position);
    const bool word = c == '_' || is_alnum(c);
    if (word && !in_word) ++count;
    in_word = word;
  }
  return Datum::integer(count);
}

std::string percent_encode(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && keep_slash);
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

/// One part of a query: blanks as '+', slashes encoded.
std::string query_part(Runtime& runtime, const Datum& value) {
  return replace_text(runtime, percent_encode(to_str(runtime, value), false), "%20", "+", -1);
}

Datum url_encode(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("urlencode", arguments, {});
  if (input.is_string() || !is_iterable(input)) {
    const std::string text = to_str(runtime, input);
    runtime.meter().require(text.size() * 3);
    return runtime.string(percent_encode(text, true));
  }
  std::string out;
  const auto add_pair = [&](const Datum& key, const Datum& value) {
    if (!out.empty()) out += '&';
    out += query_part(runtime, key) + "=" + query_part(runtime, value);
    runtime.meter().require(out.size());
  };
  if (input.is(Type::kDict)) {
    for (const auto& [key, value] : input.as<DictObject>().entries) add_pair(key, value);
  } else {
    for (const Datum& pair : to_vector(runtime, input)) {
      const std::vector<Datum> parts = to_vector(runtime, pair);
      if (parts.size() != 2) throw RenderError("urlencode: expected pairs");
      add_pair(parts[0], parts[1]);
    }
  }
  return runtime.string(std::move(out));
}

Datum format_filter(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const Datum text = as_string(runtime, input);
  if (!arguments.positional.empty() && !arguments.keyword.empty()) {
    throw RenderError("can't handle positional and keyword arguments at the same time");
  }
  if (arguments.keyword.empty()) {
    return format_percent(runtime, text, runtime.tuple(arguments.positional));
  }
  const Ref<DictObject> values = runtime.new_dict();
  for (const auto& [name, value] : arguments.keyword) {
    dict_set(runtime, *values, runtime.string(std::string(name)), value);
  }
  return format_percent(runtime, text, runtime.dict(values));
}

Datum to_json(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound =
      bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  return runtime.string(
      dump_json(runtime, input, json_options(runtime, bound[0], bound[1], bound[2], bound[3])));
}

constexpr Filter kFilters[] = {
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize_filter},
    {"title", title},
    {"trim", trim},
    {"replace", replace},
    {"string", string},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"safe", safe},
    {"indent", indent},
    {"truncate", truncate},
    {"center", center},
    {"wordcount", word_count},
    {"urlencode", url_encode},
    {"format", format_filter},
    {"tojson", to_json},
};

}  // namespace

std::span<const Filter> text_filters() {
  return kFilters;
}

}  // namespace quire::text::jinja
