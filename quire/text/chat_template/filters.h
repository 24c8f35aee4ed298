// The table of filters: name | function over a value and arguments.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

using FilterFunction = Datum (*)(Runtime&, const Datum& input, const Arguments&);

struct Filter {
  std::string_view name;
  FilterFunction apply;
};

/// The filter called `name`, or null.
const Filter* find_filter(std::string_view name);

// The tables find_filter looks through, one a file.
std::span<const Filter> text_filters();
std::span<const Filter> number_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> selection_filters();

/// Arguments matched to parameter names, as Python does for a function `name(parameters)`; those
/// not given are null. Throws RenderError for one too many, an unknown name or a name given twice.
std::vector<const Datum*> bind(std::string_view function, const Arguments& arguments,
                               std::initializer_list<std::string_view> parameters);

/// Throws RenderError unless the argument is an int (or bool); `fallback` when it was not given.
int64_t integer_or(const Datum* argument, int64_t fallback);
bool truth_or(const Datum* argument, bool fallback);

/// Looks up "a.b.0" in `item`, as filters with `attribute` do.
Datum dotted_attribute(Runtime& runtime, Datum item, const Datum& path);
/// Strings in lower case, all else as it is.
Datum ignore_case(Runtime& runtime, const Datum& value);

}  // namespace quire::text::jinja
