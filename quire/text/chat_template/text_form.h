// str() and repr() of values as Python writes them.
#pragma once

#include <string>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

/// The shortest text that reads back as `value`, in Python's format.
std::string float_repr(double value);

void append_str(Runtime& runtime, const Datum& value, std::string& out);
void append_repr(Runtime& runtime, const Datum& value, std::string& out);
std::string to_str(Runtime& runtime, const Datum& value);
std::string to_repr(Runtime& runtime, const Datum& value);
/// repr() of a text.
void append_quoted(std::string_view text, std::string& out);
/// `value` as a string Datum: itself if it is one, else str() of it.
Datum as_string(Runtime& runtime, const Datum& value);
/// Escapes & < > ' " for HTML, as MarkupSafe does.
std::string escape_html(std::string_view text);

}  // namespace quire::text::jinja
