#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/format.h"
#include "quire/text/chat_template/methods.h"
#include "quire/text/chat_template/sequence.h"
#include "quire/text/chat_template/text_split.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

std::string_view text_argument(const Datum* argument, std::string_view method) {
  if (argument == nullptr) throw RenderError(fmt::format("{}() missing an argument", method));
  check_defined(*argument);
  if (!argument->is_string()) {
    throw RenderError(
        fmt::format("{}() argument must be str, not {}", method, type_name(*argument)));
  }
  return text_of(*argument);
}

template <std::string (*map)(std::string_view)>
Datum mapped(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("method", arguments, {});
  runtime.meter().step_bytes(text_of(self).size() * 4);
  return runtime.string(map(text_of(self)));
}

template <StripSide side>
Datum strip_method(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("strip", arguments, {"chars"});
  if (bound[0] == nullptr || bound[0]->is_none()) {
    return runtime.string(std::string(strip(text_of(self), side)));
  }
  return runtime.string(
      std::string(strip_charged(runtime, text_of(self), side, text_argument(bound[0], "strip"))));
}

Datum list_of(Runtime& runtime, const std::vector<std::string_view>& parts) {
  std::vector<Datum> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(runtime.string(std::string(part)));
  return runtime.list(std::move(items));
}

template <bool from_right>
Datum split(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("split", arguments, {"sep", "maxsplit"});
  const int64_t max_splits = integer_or(bound[1], -1);
  const std::string_view text = text_of(self);
  runtime.meter().step_bytes(text.size());
  if (bound[0] == nullptr || bound[0]->is_none()) {
    return list_of(runtime, from_right ? split_space_from_right(runtime, text, max_splits)
                                       : split_space(runtime, text, max_splits));
  }
  const std::string_view separator = text_argument(bound[0], "split");
  if (separator.empty()) throw RenderError("empty separator");
  return list_of(runtime, from_right ? split_by_from_right(runtime, text, separator, max_splits)
                                     : split_by(runtime, text, separator, max_splits));
}

Datum split_lines_method(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("splitlines", arguments, {"keepends"});
  return list_of(runtime, split_lines(runtime, text_of(self), truth_or(bound[0], false)));
}

template <bool from_right>
Datum partition(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("partition", arguments, {"sep"});
  const std::string_view separator = text_argument(bound[0], "partition");
  const std::string_view text = text_of(self);
  if (separator.empty()) throw RenderError("empty separator");
  charge_search(runtime, text, separator);
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  std::string_view before = text;
  std::string_view middle;
  std::string_view after;
  if (at != std::string_view::npos) {
    before = text.substr(0, at);
    middle = separator;
    after = text.substr(at + separator.size());
  } else if (from_right) {
    std::swap(before, after);
  }
  const auto part = [&](std::string_view piece) { return runtime.string(std::string(piece)); };
  return runtime.tuple({part(before), part(middle), part(after)});
}

Datum replace(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  if (!arguments.keyword.empty()) throw RenderError("str.replace() takes no keyword arguments");
  const auto bound = bind("replace", arguments, {"old", "new", "count"});
  return runtime.string(replace_text(runtime, text_of(self), text_argument(bound[0], "replace"),
                                     text_argument(bound[1], "replace"), integer_or(bound[2], -1)));
}

/// The part of a text that start and stop (code points, as in slices) leave, and where it begins.
struct Window {
  std::string_view text;
  int64_t begin;  // in code points
  bool empty_beyond_end;
};

Window window_of(const Datum& self, const Datum* start, const Datum* stop) {
  const auto length = static_cast<int64_t>(string_length(self));
  const auto position = [&](const Datum* bound, int64_t fallback) {
    if (bound == nullptr || bound->is_none()) return fallback;
    const int64_t at = integer_or(bound, fallback);
    return at < 0 ? std::max<int64_t>(at + length, 0) : at;
  };
  const int64_t first = position(start, 0);
  const int64_t last = std::min(position(stop, length), length);
  if (first > last) return {{}, first, true};
  const std::string_view text = text_of(self);
  const size_t begin = byte_offset(text, static_cast<size_t>(first));
  const size_t end = byte_offset(text, static_cast<size_t>(last));
  return {text.substr(begin, end - begin), first, false};
}

/// The position of the first or last occurrence in code points, or -1.
int64_t find_position(Runtime& runtime, const Datum& self, const Arguments& arguments,
                      bool from_right) {
  const auto bound = bind("find", arguments, {"sub", "start", "end"});
  const std::string_view needle = text_argument(bound[0], "find");
  const Window window = window_of(self, bound[1], bound[2]);
  if (window.empty_beyond_end) return -1;
  charge_search(runtime, window.text, needle);
  const size_t at = from_right ? window.text.rfind(needle) : window.text.find(needle);
  if (at == std::string_view::npos) return -1;
  return window.begin + static_cast<int64_t>(count_code_points(window.text.substr(0, at)));
}

template <bool from_right>
Datum find(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  return Datum::integer(find_position(runtime, self, arguments, from_right));
}

template <bool from_right>
Datum index(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const int64_t position = find_position(runtime, self, arguments, from_right);
  if (position < 0) throw RenderError("substring not found");
  return Datum::integer(position);
}

Datum count(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("count", arguments, {"sub", "start", "end"});
  const std::string_view needle = text_argument(bound[0], "count");
  const Window window = window_of(self, bound[1], bound[2]);
  if (window.empty_beyond_end) return Datum::integer(0);
  if (needle.empty()) {
    return Datum::integer(static_cast<int64_t>(count_code_points(window.text)) + 1);
  }
  charge_search(runtime, window.text, needle);
  int64_t found = 0;
  for (size_t at = window.text.find(needle); at != std::string_view::npos;
       at = window.text.find(needle, at + needle.size())) {
    ++found;
  }
  return Datum::integer(found);
}

template <bool at_start>
Datum starts_or_ends(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound =
      bind(at_start ? "startswith" : "endswith", arguments, {"affix", "start", "end"});
  if (bound[0] == nullptr) throw RenderError("startswith() missing an argument");
  const Window window = window_of(self, bound[1], bound[2]);
  const auto matches = [&](const Datum& affix) {
    runtime.meter().step();
    const std::string_view text = text_argument(&affix, at_start ? "startswith" : "endswith");
    if (window.empty_beyond_end) return false;
    return at_start ? window.text.starts_with(text) : window.text.ends_with(text);
  };
  if (!bound[0]->is(Type::kTuple)) return Datum::boolean(matches(*bound[0]));
  const auto& affixes = bound[0]->as<ListObject>().items;
  return Datum::boolean(std::any_of(affixes.begin(), affixes.end(), matches));
}

template <bool at_start>
Datum remove_affix(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("removeprefix", arguments, {"affix"});
  const std::string_view affix = text_argument(bound[0], "removeprefix");
  std::string_view text = text_of(self);
  if (at_start && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!at_start && text.ends_with(affix)) text.remove_suffix(affix.size());
  return runtime.string(std::string(text));
}

Datum join(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("join", arguments, {"iterable"});
  if (bound[0] == nullptr) throw RenderError("join() takes exactly one argument (0 given)");
  std::string out;
  bool first = true;
  Cursor cursor(runtime, *bound[0]);
  for (Datum item; cursor.next(item);) {
    check_defined(item);
    if (!item.is_string()) {
      throw RenderError(
          fmt::format("sequence item: expected str instance, {} found", type_name(item)));
    }
    const std::string_view separator = first ? std::string_view() : text_of(self);
    runtime.meter().require(out.size() + separator.size() + text_of(item).size());
    runtime.meter().step_bytes(separator.size() + text_of(item).size());
    out += separator;
    out += text_of(item);
    first = false;
  }
  return runtime.string(std::move(out));
}

template <Alignment alignment>
Datum pad(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("ljust", arguments, {"width", "fillchar"});
  char32_t fill = U' ';
  if (bound[1] != nullptr) {
    const std::string_view text = text_argument(bound[1], "ljust");
    size_t position = 0;
    if (!text.empty()) fill = decode_utf8(text, position);
    if (text.empty() || position != text.size()) {
      throw RenderError("The fill character must be exactly one character long");
    }
  }
  if (bound[0] == nullptr) throw RenderError("ljust() missing a width");
  return runtime.string(pad_text(runtime, self, integer_or(bound[0], 0), fill, alignment));
}

Datum zero_fill(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("zfill", arguments, {"width"});
  if (bound[0] == nullptr) throw RenderError("zfill() missing a width");
  std::string out = pad_text(runtime, self, integer_or(bound[0], 0), U'0', Alignment::kRight);
  const std::string_view text = text_of(self);
  const size_t sign = out.size() - text.size();  // the sign goes before the zeros
  if (sign > 0 && !text.empty() && (text[0] == '+' || text[0] == '-')) {
    out[0] = text[0];
    out[sign] = '0';
  }
  return runtime.string(std::move(out));
}

Datum expand_tabs(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("expandtabs", arguments, {"tabsize"});
  const int64_t size = integer_or(bound[0], 8);
  std::string out;
  int64_t column = 0;
  const std::string_view text = text_of(self);
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = decode_utf8(text, position);
    if (c == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      runtime.meter().require(out.size() + static_cast<size_t>(blanks));
      runtime.meter().step_bytes(static_cast<size_t>(blanks));
      out.append(static_cast<size_t>(blanks), ' ');
      column += blanks;
    } else {
      out += text.substr(begin, position - begin);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return runtime.string(std::move(out));
}

Datum format_method(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  return format_braces(runtime, text_of(self), arguments);
}

constexpr Method kMethods[] = {
    {"upper", mapped<to_upper>},
    {"lower", mapped<to_lower>},
    {"casefold", mapped<to_lower>},
    {"title", mapped<to_title>},
    {"capitalize", mapped<capitalize>},
    {"swapcase", mapped<swap_case>},
    {"strip", strip_method<StripSide::kBoth>},
    {"lstrip", strip_method<StripSide::kLeft>},
    {"rstrip", strip_method<StripSide::kRight>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", split_lines_method},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"replace", replace},
    {"find", find<false>},
    {"rfind", find<true>},
    {"index", index<false>},
    {"rindex", index<true>},
    {"count", count},
    {"startswith", starts_or_ends<true>},
    {"endswith", starts_or_ends<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"join", join},
    {"ljust", pad<Alignment::kLeft>},
    {"rjust", pad<Alignment::kRight>},
    {"center", pad<Alignment::kCenter>},
    {"zfill", zero_fill},
    {"expandtabs", expand_tabs},
    {"format", format_method},
};

}  // namespace

std::span<const Method> string_methods() {
  return kMethods;
}

}  // namespace quire::text::jinja
