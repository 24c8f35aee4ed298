// Parser: turns a template's tokens into its syntax tree.
#pragma once

#include <string_view>

#include "quire/text/chat_template/ast.h"

namespace quire::text::jinja {

/// Parses and resolves every variable to its slot. Throws SyntaxError.
TemplateTree parse_template(std::string_view source);

}  // namespace quire::text::jinja
