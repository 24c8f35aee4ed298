// Walks over the names in expressions and statements, for the resolver.
#pragma once

#include <functional>
#include <string_view>

#include "quire/text/chat_template/ast.h"

namespace quire::text::jinja {

/// Calls `visit` on every name read in `expression` (null: none), in the order of the source.
void walk_names(Expr* expression, const std::function<void(NameExpr&)>& visit);
void walk_names(const Expr* expression, const std::function<void(const NameExpr&)>& visit);
/// True when `body` reads `name` anywhere, inner scopes included and blocks excluded.
bool mentions_name(const Body& body, std::string_view name);

}  // namespace quire::text::jinja
