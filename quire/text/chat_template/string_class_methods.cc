// str.isalpha and its kin.
#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/methods.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

/// True when the text is not empty and every code point is in the class.
template <bool (*in_class)(char32_t)>
Datum all_of_class(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("is...", arguments, {});
  const std::string_view text = text_of(self);
  runtime.meter().step_bytes(text.size() * 4);
  for (size_t position = 0; position < text.size();) {
    if (!in_class(decode_utf8(text, position))) return Datum::boolean(false);
  }
  return Datum::boolean(!text.empty());
}

/// A cased character, and none of the other case.
template <bool lower>
Datum all_of_case(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("islower", arguments, {});
  const std::string_view text = text_of(self);
  runtime.meter().step_bytes(text.size() * 4);
  bool any = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = decode_utf8(text, position);
    if (is_titlecase(c) || (lower ? is_upper(c) : is_lower(c))) return Datum::boolean(false);
    any = any || is_cased(c);
  }
  return Datum::boolean(any);
}

Datum is_title_text(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("istitle", arguments, {});
  const std::string_view text = text_of(self);
  runtime.meter().step_bytes(text.size() * 4);
  bool any = false;
  bool after_cased = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = decode_utf8(text, position);
    const bool begins = is_upper(c) || is_titlecase(c);
    if (begins ? after_cased : is_lower(c) && !after_cased) return Datum::boolean(false);
    after_cased = begins || is_lower(c);
    any = any || after_cased;
  }
  return Datum::boolean(any);
}

Datum is_ascii_text(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("isascii", arguments, {});
  runtime.meter().step_bytes(text_of(self).size());
  return Datum::boolean(is_ascii(text_of(self)));
}

Datum is_printable_text(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  if (text_of(self).empty()) return Datum::boolean(true);
  return all_of_class<is_printable>(runtime, self, arguments);
}

Datum is_identifier(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("isidentifier", arguments, {});
  const std::string_view text = text_of(self);
  runtime.meter().step_bytes(text.size() * 4);
  for (size_t position = 0; position < text.size();) {
    const bool first = position == 0;
    const char32_t c = decode_utf8(text, position);
    if (c != '_' && !is_alpha(c) && (first || !is_decimal(c))) return Datum::boolean(false);
  }
  return Datum::boolean(!text.empty());
}

constexpr Method kMethods[] = {
    {"isalpha", all_of_class<is_alpha>},
    {"isalnum", all_of_class<is_alnum>},
    {"isdigit", all_of_class<is_digit>},
    {"isdecimal", all_of_class<is_decimal>},
    {"isnumeric", all_of_class<is_numeric>},
    {"isspace", all_of_class<is_space>},
    {"islower", all_of_case<true>},
    {"isupper", all_of_case<false>},
    {"istitle", is_title_text},
    {"isascii", is_ascii_text},
    {"isprintable", is_printable_text},
    {"isidentifier", is_identifier},
};

}  // namespace

std::span<const Method> string_class_methods() {
  return kMethods;
}

}  // namespace quire::text::jinja
