#include <fmt/format.h>

#include "quire/text/chat_template/evaluator.h"
#include "quire/text/chat_template/lookup.h"
#include "quire/text/chat_template/methods.h"
#include "quire/text/chat_template/text_form.h"

namespace quire::text::jinja {

Datum Evaluator::evaluate(const Expr& expression) {
  runtime_.meter().step();
  const LevelGuard guard(level_);
  switch (expression.kind) {
    case ExprKind::kConstant:
      return static_cast<const ConstantExpr&>(expression).value;
    case ExprKind::kName:
      return evaluate_name(static_cast<const NameExpr&>(expression));
    case ExprKind::kTuple:
    case ExprKind::kList:
      return evaluate_sequence(static_cast<const ListExpr&>(expression));
    case ExprKind::kDict:
      return evaluate_dict(static_cast<const DictExpr&>(expression));
    case ExprKind::kAttribute: {
      const auto& node = static_cast<const AttributeExpr&>(expression);
      return get_attribute(runtime_, evaluate(*node.object), node.name);
    }
    case ExprKind::kItem: {
      const auto& node = static_cast<const ItemExpr&>(expression);
      const Datum object = evaluate(*node.object);
      return get_item(runtime_, object, evaluate(*node.key));
    }
    case ExprKind::kSlice:
      return evaluate_slice(static_cast<const SliceExpr&>(expression));
    case ExprKind::kCall: {
      const auto& node = static_cast<const CallExpr&>(expression);
      const Datum callee = evaluate(*node.callee);
      return call(callee, evaluate_arguments(node.arguments));
    }
    case ExprKind::kFilter:
      return evaluate_filter(static_cast<const FilterExpr&>(expression), nullptr);
    case ExprKind::kTest:
      return Datum::boolean(evaluate_test(static_cast<const TestExpr&>(expression)));
    case ExprKind::kNot:
      return Datum::boolean(
          !is_true(evaluate(*static_cast<const ListExpr&>(expression).items.front())));
    case ExprKind::kNegate:
      return negate(evaluate(*static_cast<const ListExpr&>(expression).items.front()));
    case ExprKind::kPlus:
      return unary_plus(evaluate(*static_cast<const ListExpr&>(expression).items.front()));
    case ExprKind::kBinary: {
      const auto& node = static_cast<const BinaryExpr&>(expression);
      const Datum left = evaluate(*node.left);
      return binary(runtime_, node.op, left, evaluate(*node.right));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const auto& items = static_cast<const ListExpr&>(expression).items;
      Datum left = evaluate(*items[0]);
      const bool decided = is_true(left) == (expression.kind == ExprKind::kOr);
      return decided ? left : evaluate(*items[1]);
    }
    case ExprKind::kCompare:
      return Datum::boolean(evaluate_compare(static_cast<const CompareExpr&>(expression)));
    case ExprKind::kConcat:
      return evaluate_concat(static_cast<const ListExpr&>(expression));
    case ExprKind::kConditional:
      return evaluate_conditional(static_cast<const ConditionalExpr&>(expression));
  }
  return Datum::none();
}

Datum Evaluator::evaluate_name(const NameExpr& node) {
  const Datum& value = slot(node.slot);
  return value.is_missing() ? runtime_.undefined_name(node.name) : value;
}

Datum Evaluator::evaluate_sequence(const ListExpr& node) {
  std::vector<Datum> items;
  items.reserve(node.items.size());
  for (const ExprPtr& item : node.items) items.push_back(evaluate(*item));
  return node.kind == ExprKind::kList ? runtime_.list(std::move(items))
                                      : runtime_.tuple(std::move(items));
}

Datum Evaluator::evaluate_dict(const DictExpr& node) {
  const Ref<DictObject> dict = runtime_.new_dict();
  for (const auto& [key, value] : node.items) {
    Datum key_value = evaluate(*key);
    dict_set(runtime_, *dict, std::move(key_value), evaluate(*value));
  }
  return runtime_.dict(dict);
}

Datum Evaluator::evaluate_slice(const SliceExpr& node) {
  const Datum object = evaluate(*node.object);
  const auto part = [&](const ExprPtr& expression) {
    return expression ? evaluate(*expression) : Datum::none();
  };
  const Datum start = part(node.start);
  const Datum stop = part(node.stop);
  return get_slice(runtime_, object, start, stop, part(node.step));
}

Datum Evaluator::evaluate_filter(const FilterExpr& node, const Datum* block_text) {
  if (node.filter == nullptr) {
    throw RenderError(fmt::format("No filter named '{}' found.", node.name));
  }
  Datum input;
  if (node.input == nullptr) {
    input = *block_text;
  } else if (block_text != nullptr) {  // a chain over a block's text
    input = evaluate_filter(static_cast<const FilterExpr&>(*node.input), block_text);
  } else {
    input = evaluate(*node.input);
  }
  return node.filter->apply(runtime_, input, evaluate_arguments(node.arguments));
}

bool Evaluator::evaluate_test(const TestExpr& node) {
  if (node.test == nullptr) throw RenderError(fmt::format("No test named '{}' found.", node.name));
  const Datum input = evaluate(*node.input);
  return node.test->check(runtime_, input, evaluate_arguments(node.arguments));
}

bool Evaluator::evaluate_compare(const CompareExpr& node) {
  Datum left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Datum right = evaluate(*operand);
    if (!compare(runtime_, op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Datum Evaluator::evaluate_concat(const ListExpr& node) {
  std::string out;
  for (const ExprPtr& part : node.items) append_str(runtime_, evaluate(*part), out);
  return runtime_.string(std::move(out));
}

Datum Evaluator::evaluate_conditional(const ConditionalExpr& node) {
  if (is_true(evaluate(*node.condition))) return evaluate(*node.if_true);
  if (node.if_false) return evaluate(*node.if_false);
  return runtime_.undefined_hint(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was "
                  "defined.",
                  node.line));
}

Arguments Evaluator::evaluate_arguments(const CallArguments& arguments) {
  Arguments result;
  result.positional.reserve(arguments.positional.size());
  for (const ExprPtr& value : arguments.positional) result.positional.push_back(evaluate(*value));
  for (const auto& [name, value] : arguments.keyword) {
    result.keyword.emplace_back(name, evaluate(*value));
  }
  if (arguments.star) {
    for (Datum& item : to_vector(runtime_, evaluate(*arguments.star))) {
      result.positional.push_back(std::move(item));
    }
  }
  if (arguments.star_star) {
    const Datum dict = evaluate(*arguments.star_star);
    check_defined(dict);
    if (!dict.is(Type::kDict)) throw RenderError("argument after ** must be a mapping");
    for (const auto& [key, value] : dict.as<DictObject>().entries) {
      if (!key.is_string()) throw RenderError("keywords must be strings");
      if (result.find(text_of(key)) != nullptr) {
        throw RenderError(
            fmt::format("got multiple values for keyword argument '{}'", text_of(key)));
      }
      result.keyword.emplace_back(text_of(key), value);
    }
    result.kept.push_back(dict);
  }
  return result;
}

Datum Evaluator::call(const Datum& callee, const Arguments& arguments) {
  check_defined(callee);
  switch (callee.type()) {
    case Type::kBuiltin:
      return callee.as_builtin()->call(runtime_, arguments);
    case Type::kMethod: {
      const auto& method = callee.as<MethodObject>();
      return method.method->call(runtime_, method.receiver, arguments);
    }
    case Type::kMacro:
      return call_macro(callee.as<MacroObject>(), arguments);
    case Type::kLoop:
      return call_loop(callee.as<LoopObject>(), arguments);
    case Type::kJoiner: {
      auto& joiner = callee.as<JoinerObject>();
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return runtime_.borrowed_string("");
    }
    default:
      throw RenderError(fmt::format("'{}' object is not callable", type_name(callee)));
  }
}

Datum Evaluator::call_macro(const MacroObject& macro, const Arguments& arguments) {
  const Callable& callable = *macro.callable;
  const Ref<Activation> frame = runtime_.heap().make<Activation>(
      callable.function.num_slots * sizeof(Datum), callable.function.num_slots, macro.closure);
  bind_parameters(callable, arguments, *frame);
  return run_callable(callable, frame);
}

void Evaluator::bind_parameters(const Callable& callable, const Arguments& arguments,
                                Activation& frame) {
  const size_t count = callable.parameters.size();
  size_t used_keywords = 0;
  for (size_t i = 0; i < count; ++i) {
    const Target& parameter = callable.parameters[i];
    Datum& target = frame.slots[parameter.slot.slot];
    if (i < arguments.positional.size()) {
      target = arguments.positional[i];
    } else if (const Datum* given = arguments.find(parameter.name)) {
      target = *given;
      ++used_keywords;
    }
  }
  const bool takes_caller = callable.caller_slot.has_value();
  if (takes_caller && arguments.find("caller") != nullptr) ++used_keywords;
  if (!callable.kwargs_slot && used_keywords < arguments.keyword.size()) {
    throw RenderError(fmt::format("macro '{}' takes no keyword argument '{}'", callable.name,
                                  arguments.keyword.back().first));
  }
  if (!callable.varargs_slot && arguments.positional.size() > count) {
    throw RenderError(
        fmt::format("macro '{}' takes not more than {} argument(s)", callable.name, count));
  }
  bind_special(callable, arguments, frame);
}

void Evaluator::bind_special(const Callable& callable, const Arguments& arguments,
                             Activation& frame) {
  const size_t count = callable.parameters.size();
  if (callable.caller_slot) {
    const Datum* caller = arguments.find("caller");
    frame.slots[*callable.caller_slot] =
        caller != nullptr ? *caller : runtime_.undefined_hint("No caller defined");
  }
  if (callable.varargs_slot) {
    std::vector<Datum> rest;
    for (size_t i = count; i < arguments.positional.size(); ++i) {
      rest.push_back(arguments.positional[i]);
    }
    frame.slots[*callable.varargs_slot] = runtime_.tuple(std::move(rest));
  }
  if (callable.kwargs_slot) {
    const Ref<DictObject> rest = runtime_.new_dict();
    for (const auto& [name, value] : arguments.keyword) {
      bool is_parameter = callable.caller_slot && name == "caller";
      for (size_t i = std::min(count, arguments.positional.size()); i < count; ++i) {
        is_parameter = is_parameter || callable.parameters[i].name == name;
      }
      if (!is_parameter) dict_set(runtime_, *rest, runtime_.string(std::string(name)), value);
    }
    frame.slots[*callable.kwargs_slot] = runtime_.dict(rest);
  }
}

void Evaluator::fill_defaults(const Callable& callable, Activation& frame) {
  const size_t count = callable.parameters.size();
  const size_t first_default = count - callable.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    Datum& target = frame.slots[callable.parameters[i].slot.slot];
    if (!target.is_missing()) continue;
    if (i >= first_default) {
      target = evaluate(*callable.defaults[i - first_default]);
    } else {
      target = runtime_.undefined_hint(
          fmt::format("parameter '{}' was not provided", callable.parameters[i].name));
    }
  }
}

}  // namespace quire::text::jinja
