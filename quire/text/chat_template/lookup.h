// Attribute, item and slice access by Jinja's rules inside its immutable sandbox.
#pragma once

#include <string_view>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

/// object.name: an attribute or method, else the item under `name`, else undefined.
Datum get_attribute(Runtime& runtime, const Datum& object, std::string_view name);
/// object[key]: the item, else (for a string key) the attribute, else undefined.
Datum get_item(Runtime& runtime, const Datum& object, const Datum& key);
/// object[start:stop:step], none for a part left out. Throws RenderError where Python would.
Datum get_slice(Runtime& runtime, const Datum& object, const Datum& start, const Datum& stop,
                const Datum& step);

}  // namespace quire::text::jinja
