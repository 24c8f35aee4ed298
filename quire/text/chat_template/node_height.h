// Putting nodes of expressions together: each knows the height of the tree below it, which is
// bounded.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "quire/text/chat_template/ast.h"
#include "quire/text/chat_template/expression_parser.h"
#include "quire/text/chat_template/render_error.h"

namespace quire::text::jinja {

/// Sets the height of `node` over `children` (null ones skipped) and its line.
template <typename Node>
ExprPtr finish(std::unique_ptr<Node> node, uint32_t line,
               std::initializer_list<const Expr*> children) {
  node->line = line;
  for (const Expr* child : children) {
    if (child != nullptr) node->height = std::max(node->height, child->height + 1);
  }
  if (node->height > kMaxHeight) throw SyntaxError(line, "expression nested too deeply");
  return node;
}

inline void raise_height(Expr& node, const std::vector<ExprPtr>& children) {
  for (const ExprPtr& child : children) node.height = std::max(node.height, child->height + 1);
}

inline void raise_height(Expr& node, const CallArguments& arguments) {
  raise_height(node, arguments.positional);
  for (const auto& [name, value] : arguments.keyword) {
    node.height = std::max(node.height, value->height + 1);
  }
  for (const Expr* part : {arguments.star.get(), arguments.star_star.get()}) {
    if (part != nullptr) node.height = std::max(node.height, part->height + 1);
  }
}

inline ExprPtr make_list(ExprKind kind, std::vector<ExprPtr> items, uint32_t line) {
  auto node = std::make_unique<ListExpr>(kind);
  node->items = std::move(items);
  raise_height(*node, node->items);
  return finish(std::move(node), line, {});
}

inline ExprPtr make_pair(ExprKind kind, ExprPtr left, ExprPtr right, uint32_t line) {
  std::vector<ExprPtr> items;
  items.push_back(std::move(left));
  items.push_back(std::move(right));
  return make_list(kind, std::move(items), line);
}

inline ExprPtr make_unary(ExprKind kind, ExprPtr operand, uint32_t line) {
  std::vector<ExprPtr> items;
  items.push_back(std::move(operand));
  return make_list(kind, std::move(items), line);
}

}  // namespace quire::text::jinja
