#include "quire/text/chat_template/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "quire/text/chat_template/lookup.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {

const Filter* find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), number_filters(), sequence_filters(), selection_filters()}) {
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const Filter& filter) { return filter.name == name; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

std::vector<const Datum*> bind(std::string_view function, const Arguments& arguments,
                               std::initializer_list<std::string_view> parameters) {
  if (arguments.positional.size() > parameters.size()) {
    throw RenderError(fmt::format("{}() takes at most {} argument(s) ({} given)", function,
                                  parameters.size(), arguments.positional.size()));
  }
  std::vector<const Datum*> bound(parameters.size(), nullptr);
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.keyword) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end()) {
      throw RenderError(
          fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    }
    const Datum*& place = bound[static_cast<size_t>(found - parameters.begin())];
    if (place != nullptr) {
      throw RenderError(fmt::format("{}() got multiple values for argument '{}'", function, name));
    }
    place = &value;
  }
  return bound;
}

int64_t integer_or(const Datum* argument, int64_t fallback) {
  if (argument == nullptr) return fallback;
  check_defined(*argument);
  if (!argument->is_integral()) {
    throw RenderError(
        fmt::format("'{}' object cannot be interpreted as an integer", type_name(*argument)));
  }
  return argument->as_int();
}

bool truth_or(const Datum* argument, bool fallback) {
  return argument == nullptr ? fallback : is_true(*argument);
}

Datum dotted_attribute(Runtime& runtime, Datum item, const Datum& path) {
  if (path.is_none()) return item;
  if (!path.is_string()) return get_item(runtime, item, path);
  std::string_view rest = text_of(path);
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    int64_t index = 0;
    if (number &&
        std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc()) {
      item = get_item(runtime, item, Datum::integer(index));
    } else {
      item = get_item(runtime, item, runtime.string(std::string(part)));
    }
    if (dot == std::string_view::npos) return item;
    rest.remove_prefix(dot + 1);
  }
}

Datum ignore_case(Runtime& runtime, const Datum& value) {
  return value.is_string() ? runtime.string(to_lower(text_of(value))) : value;
}

}  // namespace quire::text::jinja
