#include "quire/text/chat_template/expression_walk.h"

#include <algorithm>

namespace quire::text::jinja {
namespace {

using Visit = std::function<void(NameExpr&)>;

void walk(Expr* expression, const Visit& visit);

void walk_arguments(CallArguments& arguments, const Visit& visit) {
  for (const ExprPtr& value : arguments.positional) walk(value.get(), visit);
  for (const auto& [name, value] : arguments.keyword) walk(value.get(), visit);
  walk(arguments.star.get(), visit);
  walk(arguments.star_star.get(), visit);
}

void walk_collection(Expr& expression, const Visit& visit) {
  if (expression.kind == ExprKind::kDict) {
    for (const auto& [key, value] : static_cast<DictExpr&>(expression).items) {
      walk(key.get(), visit);
      walk(value.get(), visit);
    }
    return;
  }
  for (const ExprPtr& item : static_cast<ListExpr&>(expression).items) walk(item.get(), visit);
}

void walk_slice(SliceExpr& node, const Visit& visit) {
  for (Expr* part : {node.object.get(), node.start.get(), node.stop.get(), node.step.get()}) {
    walk(part, visit);
  }
}

void walk(Expr* expression, const Visit& visit) {
  if (expression == nullptr) return;
  switch (expression->kind) {
    case ExprKind::kConstant:
      break;
    case ExprKind::kName:
      visit(static_cast<NameExpr&>(*expression));
      break;
    case ExprKind::kAttribute:
      walk(static_cast<AttributeExpr&>(*expression).object.get(), visit);
      break;
    case ExprKind::kItem: {
      auto& node = static_cast<ItemExpr&>(*expression);
      walk(node.object.get(), visit);
      walk(node.key.get(), visit);
      break;
    }
    case ExprKind::kSlice:
      walk_slice(static_cast<SliceExpr&>(*expression), visit);
      break;
    case ExprKind::kCall: {
      auto& node = static_cast<CallExpr&>(*expression);
      walk(node.callee.get(), visit);
      walk_arguments(node.arguments, visit);
      break;
    }
    case ExprKind::kFilter: {
      auto& node = static_cast<FilterExpr&>(*expression);
      walk(node.input.get(), visit);
      walk_arguments(node.arguments, visit);
      break;
    }
    case ExprKind::kTest: {
      auto& node = static_cast<TestExpr&>(*expression);
      walk(node.input.get(), visit);
      walk_arguments(node.arguments, visit);
      break;
    }
    case ExprKind::kBinary: {
      auto& node = static_cast<BinaryExpr&>(*expression);
      walk(node.left.get(), visit);
      walk(node.right.get(), visit);
      break;
    }
    case ExprKind::kCompare: {
      auto& node = static_cast<CompareExpr&>(*expression);
      walk(node.first.get(), visit);
      for (const auto& [op, operand] : node.rest) walk(operand.get(), visit);
      break;
    }
    case ExprKind::kConditional: {
      auto& node = static_cast<ConditionalExpr&>(*expression);
      walk(node.condition.get(), visit);
      walk(node.if_true.get(), visit);
      walk(node.if_false.get(), visit);
      break;
    }
    default:
      walk_collection(*expression, visit);
      break;
  }
}

bool mentions(const Expr* expression, std::string_view name) {
  bool found = false;
  walk_names(expression, [&](const NameExpr& node) { found = found || node.name == name; });
  return found;
}

bool mentions(const Target& target, std::string_view name) {
  if (target.kind == Target::Kind::kNamespace && target.name == name) return true;
  return std::any_of(target.parts.begin(), target.parts.end(),
                     [&](const Target& part) { return mentions(part, name); });
}

bool mentions(const Callable& callable, std::string_view name) {
  return mentions_name(callable.body, name) ||
         std::any_of(callable.defaults.begin(), callable.defaults.end(),
                     [&](const ExprPtr& value) { return mentions(value.get(), name); });
}

bool mentions(const Statement& statement, std::string_view name) {
  switch (statement.kind) {
    case StatementKind::kOutput:
      return mentions(static_cast<const OutputStatement&>(statement).value.get(), name);
    case StatementKind::kIf: {
      const auto& node = static_cast<const IfStatement&>(statement);
      return mentions_name(node.otherwise, name) ||
             std::any_of(node.branches.begin(), node.branches.end(), [&](const auto& branch) {
               return mentions(branch.first.get(), name) || mentions_name(branch.second, name);
             });
    }
    case StatementKind::kFor: {
      const auto& node = static_cast<const ForStatement&>(statement);
      return mentions(node.iterable.get(), name) || mentions(node.filter.get(), name) ||
             mentions_name(node.body, name) || mentions_name(node.otherwise, name);
    }
    case StatementKind::kSet: {
      const auto& node = static_cast<const SetStatement&>(statement);
      return mentions(node.value.get(), name) || mentions(node.target, name);
    }
    case StatementKind::kSetBlock: {
      const auto& node = static_cast<const SetBlockStatement&>(statement);
      return mentions(node.filter.get(), name) || mentions(node.target, name) ||
             mentions_name(node.body, name);
    }
    case StatementKind::kMacro:
      return mentions(static_cast<const MacroStatement&>(statement).callable, name);
    case StatementKind::kCallBlock: {
      const auto& node = static_cast<const CallBlockStatement&>(statement);
      return mentions(node.call.get(), name) || mentions(node.callable, name);
    }
    case StatementKind::kFilterBlock: {
      const auto& node = static_cast<const FilterBlockStatement&>(statement);
      return mentions(node.filter.get(), name) || mentions_name(node.body, name);
    }
    case StatementKind::kWith: {
      const auto& node = static_cast<const WithStatement&>(statement);
      return mentions_name(node.body, name) ||
             std::any_of(node.values.begin(), node.values.end(),
                         [&](const ExprPtr& value) { return mentions(value.get(), name); });
    }
    default:
      return false;
  }
}

}  // namespace

void walk_names(Expr* expression, const std::function<void(NameExpr&)>& visit) {
  walk(expression, visit);
}

void walk_names(const Expr* expression, const std::function<void(const NameExpr&)>& visit) {
  walk(const_cast<Expr*>(expression), [&](NameExpr& node) { visit(node); });
}

bool mentions_name(const Body& body, std::string_view name) {
  return std::any_of(body.begin(), body.end(),
                     [&](const auto& statement) { return mentions(*statement, name); });
}

}  // namespace quire::text::jinja
