// The tables of methods of strings, dicts, lists and the small objects.
#pragma once

#include <span>
#include <string_view>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

struct Method {
  std::string_view name;
  Datum (*call)(Runtime&, const Datum& receiver, const Arguments&);
};

/// The method `name` of values like `object`, or null.
const Method* find_method(const Datum& object, std::string_view name);
/// True for a method that would change `object`, which the sandbox forbids.
bool is_mutating_method(const Datum& object, std::string_view name);

// The tables find_method looks through, one a file.
std::span<const Method> string_methods();
std::span<const Method> string_class_methods();

}  // namespace quire::text::jinja
