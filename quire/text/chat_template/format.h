// Formatting of values into text: `text % values` and str.format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

/// What a placeholder asks for, in the terms of str.format; `%` placeholders are turned into it.
struct FormatSpec {
  char32_t fill = U' ';
  char align = 0;  // '<', '>', '^', '=' or 0 for the type's own
  char sign = 0;   // '+', ' ' or 0
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;       // ',' or '_'
  int64_t precision = -1;  // -1: none
  char type = 0;
};

/// printf-style formatting; `values` is a tuple, a dict or one value.
Datum format_percent(Runtime& runtime, const Datum& text, const Datum& values);
/// str.format.
Datum format_braces(Runtime& runtime, std::string_view text, const Arguments& arguments);

/// format(value, spec), with `spec` parsed already.
std::string format_value(Runtime& runtime, const Datum& value, const FormatSpec& spec);
/// Throws RenderError.
FormatSpec parse_format_spec(std::string_view text);

}  // namespace quire::text::jinja
