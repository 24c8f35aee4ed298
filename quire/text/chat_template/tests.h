// The table of tests: value is name(arguments).
#pragma once

#include <string_view>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

struct Test {
  std::string_view name;
  bool (*check)(Runtime&, const Datum& input, const Arguments&);
};

/// The test called `name`, or null.
const Test* find_test(std::string_view name);

}  // namespace quire::text::jinja
