// JSON text of values as Python's json.dumps writes it: the tojson filter.
#pragma once

#include <optional>
#include <string>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

struct JsonOptions {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // one level's indentation; absent: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// The options from tojson's arguments, null for those not given. Throws RenderError.
JsonOptions json_options(Runtime& runtime, const Datum* ensure_ascii, const Datum* indent,
                         const Datum* separators, const Datum* sort_keys);
/// Throws RenderError for what has no JSON form.
std::string dump_json(Runtime& runtime, const Datum& value, const JsonOptions& options);

}  // namespace quire::text::jinja
