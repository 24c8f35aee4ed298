// Resolver: gives every variable of a parsed template its slot, by Jinja's scoping rules.
#pragma once

#include "quire/text/chat_template/ast.h"

namespace quire::text::jinja {

/// Fills in scopes and slots. Jinja decides at compile time which scope a name belongs to: a name
/// that is assigned anywhere in a scope is that scope's from its entry on, where it starts as the
/// outer scope's variable of that name, else (when the first mention is a read, or the assignment
/// is inside an `if`) as the request's, else as unset. Throws SyntaxError.
void resolve_names(TemplateTree& tree);

}  // namespace quire::text::jinja
