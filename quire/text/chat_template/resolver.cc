#include "quire/text/chat_template/resolver.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "quire/text/chat_template/expression_walk.h"
#include "quire/text/chat_template/render_error.h"

namespace quire::text::jinja {
namespace {

/// The names of one scope while it is being resolved.
struct Names {
  Names(Scope& of, FunctionInfo& in, Names* outside, bool starts_function)
      : scope(of), function(in), parent(outside), begins_function(starts_function) {}

  Scope& scope;
  FunctionInfo& function;
  Names* parent;
  bool begins_function;
  std::unordered_map<std::string, uint32_t> own;  // name -> index into scope.slots
  std::set<std::string> stored;
  std::vector<std::string> store_order;

  SlotInit& add(const std::string& name) {
    own[name] = static_cast<uint32_t>(scope.slots.size());
    SlotInit& init = scope.slots.emplace_back();
    init.slot = function.num_slots++;
    init.name = name;
    return init;
  }

  bool find(const std::string& name, SlotRef& ref) const {
    uint32_t hops = 0;
    for (const Names* names = this; names != nullptr; names = names->parent) {
      if (const auto found = names->own.find(name); found != names->own.end()) {
        ref = {hops, names->scope.slots[found->second].slot};
        return true;
      }
      if (names->begins_function) ++hops;
    }
    return false;
  }

  /// As find, in the scopes around this one, with hops counted from this one.
  bool find_outside(const std::string& name, SlotRef& ref) const {
    if (parent == nullptr || !parent->find(name, ref)) return false;
    if (begins_function) ++ref.hops;
    return true;
  }

  void load(const std::string& name) {
    SlotRef ref;
    if (!find(name, ref)) add(name).from = SlotInit::From::kContext;
  }

  void store(const std::string& name) {
    if (stored.insert(name).second) store_order.push_back(name);
    if (own.contains(name)) return;
    SlotRef outer;
    const bool outside = find_outside(name, outer);
    SlotInit& init = add(name);
    init.from = outside ? SlotInit::From::kOuter : SlotInit::From::kUnset;
    init.outer = outer;
  }

  uint32_t parameter(const std::string& name) {
    if (stored.insert(name).second) store_order.push_back(name);
    const auto found = own.find(name);
    SlotInit& init = found == own.end() ? add(name) : scope.slots[found->second];
    init.from = SlotInit::From::kParameter;
    return init.slot;
  }

  /// After an `if`: names first stored in one of its branches, from the mark on, may still be unset
  /// after it.
  void stored_conditionally_since(size_t mark) {
    for (size_t i = mark; i < store_order.size(); ++i) {
      SlotInit& init = scope.slots[own[store_order[i]]];
      SlotRef outer;
      const bool outside = find_outside(store_order[i], outer);
      init.from = outside ? SlotInit::From::kOuter : SlotInit::From::kContext;
      init.outer = outer;
    }
  }
};

class Resolver {
 public:
  void run(TemplateTree& tree) {
    Names names(tree.scope, tree.function, nullptr, true);
    collect(names, tree.body);
    bind(names, tree.body);
    for (const std::string& name : names.store_order) {
      tree.exports.emplace_back(name, tree.scope.slots[names.own[name]].slot);
    }
    tree.names.assign(read_.begin(), read_.end());
  }

 private:
  // First pass over a scope: which names it reads and stores, in order. Inner scopes are not
  // entered.
  void collect(Names& names, const Body& body);
  void collect(Names& names, const Statement& statement);
  void collect_if(Names& names, const IfStatement& node);
  void collect(Names& names, const Expr* expression);
  void collect_target(Names& names, const Target& target, bool is_parameter);

  // Second pass: every name of the scope gets its slot; inner scopes are resolved.
  void bind(Names& names, Body& body);
  void bind(Names& names, Statement& statement);
  void bind(Names& names, Expr* expression);
  void bind_target(Names& names, Target& target);
  void bind_for(Names& names, ForStatement& node);
  void bind_callable(Names& names, Callable& callable);
  void bind_with(Names& names, WithStatement& node);
  void bind_filtered(Names& names, Scope& scope, Expr* filter, Body& body);

  std::set<std::string> read_;
  uint32_t loop_depth_ = 0;
};

void Resolver::collect(Names& names, const Body& body) {
  for (const auto& statement : body) collect(names, *statement);
}

void Resolver::collect(Names& names, const Expr* expression) {
  walk_names(expression, [&](const NameExpr& node) { names.load(node.name); });
}

void Resolver::collect_target(Names& names, const Target& target, bool is_parameter) {
  switch (target.kind) {
    case Target::Kind::kName:
      if (target.name == "loop" && loop_depth_ > 0) {
        throw SyntaxError(target.line, "Can't assign to special loop variable in for-loop target");
      }
      if (is_parameter) {
        names.parameter(target.name);
      } else {
        names.store(target.name);
      }
      break;
    case Target::Kind::kNamespace:
      names.load(target.name);
      break;
    case Target::Kind::kTuple:
      for (const Target& part : target.parts) collect_target(names, part, is_parameter);
      break;
  }
}

void Resolver::collect_if(Names& names, const IfStatement& node) {
  // The first condition is evaluated in any case; what else the `if` holds may be skipped.
  collect(names, node.branches.front().first.get());
  const size_t mark = names.store_order.size();
  for (size_t i = 0; i < node.branches.size(); ++i) {
    if (i > 0) collect(names, node.branches[i].first.get());
    collect(names, node.branches[i].second);
  }
  collect(names, node.otherwise);
  names.stored_conditionally_since(mark);
}

void Resolver::collect(Names& names, const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::kOutput:
      collect(names, static_cast<const OutputStatement&>(statement).value.get());
      break;
    case StatementKind::kIf:
      collect_if(names, static_cast<const IfStatement&>(statement));
      break;
    case StatementKind::kFor:
      collect(names, static_cast<const ForStatement&>(statement).iterable.get());
      break;
    case StatementKind::kSet: {
      const auto& node = static_cast<const SetStatement&>(statement);
      collect(names, node.value.get());
      collect_target(names, node.target, false);
      break;
    }
    case StatementKind::kSetBlock:
      collect_target(names, static_cast<const SetBlockStatement&>(statement).target, false);
      break;
    case StatementKind::kMacro:
      collect_target(names, static_cast<const MacroStatement&>(statement).target, false);
      break;
    case StatementKind::kCallBlock:
      collect(names, static_cast<const CallBlockStatement&>(statement).call.get());
      break;
    case StatementKind::kFilterBlock:
      collect(names, static_cast<const FilterBlockStatement&>(statement).filter.get());
      break;
    case StatementKind::kWith:
      for (const ExprPtr& value : static_cast<const WithStatement&>(statement).values) {
        collect(names, value.get());
      }
      break;
    case StatementKind::kText:
    case StatementKind::kBlock:
    case StatementKind::kBreak:
    case StatementKind::kContinue:
      break;
  }
}

void Resolver::bind(Names& names, Body& body) {
  for (const auto& statement : body) bind(names, *statement);
}

void Resolver::bind(Names& names, Expr* expression) {
  walk_names(expression, [&](NameExpr& node) {
    names.find(node.name, node.slot);
    read_.insert(node.name);
  });
}

void Resolver::bind_target(Names& names, Target& target) {
  if (target.kind != Target::Kind::kTuple) names.find(target.name, target.slot);
  for (Target& part : target.parts) bind_target(names, part);
}

void Resolver::bind(Names& names, Statement& statement) {
  switch (statement.kind) {
    case StatementKind::kOutput:
      bind(names, static_cast<OutputStatement&>(statement).value.get());
      break;
    case StatementKind::kIf: {
      auto& node = static_cast<IfStatement&>(statement);
      for (auto& [condition, body] : node.branches) {
        bind(names, condition.get());
        bind(names, body);
      }
      bind(names, node.otherwise);
      break;
    }
    case StatementKind::kFor:
      bind_for(names, static_cast<ForStatement&>(statement));
      break;
    case StatementKind::kSet: {
      auto& node = static_cast<SetStatement&>(statement);
      bind(names, node.value.get());
      bind_target(names, node.target);
      break;
    }
    case StatementKind::kSetBlock: {
      auto& node = static_cast<SetBlockStatement&>(statement);
      bind_target(names, node.target);
      bind_filtered(names, node.scope, node.filter.get(), node.body);
      break;
    }
    case StatementKind::kMacro: {
      auto& node = static_cast<MacroStatement&>(statement);
      bind_target(names, node.target);
      bind_callable(names, node.callable);
      break;
    }
    case StatementKind::kCallBlock: {
      auto& node = static_cast<CallBlockStatement&>(statement);
      bind(names, node.call.get());
      bind_callable(names, node.callable);
      break;
    }
    case StatementKind::kFilterBlock: {
      auto& node = static_cast<FilterBlockStatement&>(statement);
      bind_filtered(names, node.scope, node.filter.get(), node.body);
      break;
    }
    case StatementKind::kWith:
      bind_with(names, static_cast<WithStatement&>(statement));
      break;
    case StatementKind::kBlock: {
      auto& node = static_cast<BlockStatement&>(statement);
      Names inner(node.scope, node.function, nullptr, true);
      collect(inner, node.body);
      bind(inner, node.body);
      break;
    }
    case StatementKind::kText:
    case StatementKind::kBreak:
    case StatementKind::kContinue:
      break;
  }
}

void Resolver::bind_for(Names& names, ForStatement& node) {
  bind(names, node.iterable.get());
  FunctionInfo& function = node.recursive ? node.function : names.function;
  ++loop_depth_;
  if (node.filter) {
    Names filter(node.filter_scope, function, &names, node.recursive);
    collect_target(filter, node.filter_target, true);
    collect(filter, node.filter.get());
    bind_target(filter, node.filter_target);
    bind(filter, node.filter.get());
  }
  node.uses_loop = node.recursive || mentions_name(node.body, "loop");
  Names body(node.body_scope, function, &names, node.recursive);
  if (node.uses_loop) node.loop_slot = body.parameter("loop");
  collect_target(body, node.target, true);
  collect(body, node.body);
  bind_target(body, node.target);
  bind(body, node.body);
  Names otherwise(node.otherwise_scope, function, &names, node.recursive);
  collect(otherwise, node.otherwise);
  bind(otherwise, node.otherwise);
  --loop_depth_;
}

void Resolver::bind_callable(Names& names, Callable& callable) {
  Names inner(callable.scope, callable.function, &names, true);
  for (const Target& parameter : callable.parameters) {
    inner.parameter(parameter.name);
    callable.explicit_caller = callable.explicit_caller || parameter.name == "caller";
  }
  const auto declare = [&](std::string_view name, std::optional<uint32_t>& slot) {
    const bool is_parameter =
        std::any_of(callable.parameters.begin(), callable.parameters.end(),
                    [&](const Target& parameter) { return parameter.name == name; });
    if (!is_parameter && mentions_name(callable.body, name)) {
      slot = inner.parameter(std::string(name));
    }
  };
  declare("caller", callable.caller_slot);
  declare("kwargs", callable.kwargs_slot);
  declare("varargs", callable.varargs_slot);
  for (const ExprPtr& value : callable.defaults) collect(inner, value.get());
  collect(inner, callable.body);
  for (Target& parameter : callable.parameters) bind_target(inner, parameter);
  for (const ExprPtr& value : callable.defaults) bind(inner, value.get());
  bind(inner, callable.body);
}

void Resolver::bind_with(Names& names, WithStatement& node) {
  for (const ExprPtr& value : node.values) bind(names, value.get());
  Names inner(node.scope, names.function, &names, false);
  for (const Target& target : node.targets) collect_target(inner, target, true);
  collect(inner, node.body);
  for (Target& target : node.targets) bind_target(inner, target);
  bind(inner, node.body);
}

void Resolver::bind_filtered(Names& names, Scope& scope, Expr* filter, Body& body) {
  Names inner(scope, names.function, &names, false);
  collect(inner, filter);
  collect(inner, body);
  bind(inner, filter);
  bind(inner, body);
}

}  // namespace

void resolve_names(TemplateTree& tree) {
  Resolver().run(tree);
}

}  // namespace quire::text::jinja
