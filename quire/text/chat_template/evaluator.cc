#include "quire/text/chat_template/evaluator.h"

#include <fmt/format.h>

#include "quire/text/chat_template/text_form.h"

namespace quire::text::jinja {
namespace {

/// Switches to another buffer while it lives.
class Redirect {
 public:
  Redirect(OutputBuffer*& current, OutputBuffer& to) : current_(current), saved_(current) {
    current_ = &to;
  }
  ~Redirect() { current_ = saved_; }
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;

 private:
  OutputBuffer*& current_;
  OutputBuffer* saved_;
};

/// Switches to another function's variables while it lives.
class FrameSwitch {
 public:
  FrameSwitch(Ref<Activation>& current, Ref<Activation> to) : current_(current), saved_(current) {
    current_ = std::move(to);
  }
  ~FrameSwitch() { current_ = std::move(saved_); }
  FrameSwitch(const FrameSwitch&) = delete;
  FrameSwitch& operator=(const FrameSwitch&) = delete;

 private:
  Ref<Activation>& current_;
  Ref<Activation> saved_;
};

}  // namespace

/// The items of one run of a loop: those of the iterable that pass the loop's `if`, tested as they
/// are asked for.
class ForItems : public ItemSource {
 public:
  ForItems(Evaluator& evaluator, const ForStatement& node, const Datum& iterable)
      : evaluator_(evaluator), node_(node), cursor_(evaluator.runtime_, iterable) {
    if (node.filter) evaluator.enter(node.filter_scope);
  }
  bool next(Datum& item) override {
    while (cursor_.next(item)) {
      if (!node_.filter) return true;
      evaluator_.assign(node_.filter_target, item);
      if (is_true(evaluator_.evaluate(*node_.filter))) return true;
    }
    return false;
  }
  int64_t known_length() const override {
    return node_.filter || !cursor_.has_length() ? -1 : length_of(cursor_.iterable());
  }

 private:
  Evaluator& evaluator_;
  const ForStatement& node_;
  Cursor cursor_;
};

Evaluator::Evaluator(const TemplateTree& tree, const Value::Dict& variables,
                     const RenderBudget& budget)
    : tree_(tree), variables_(variables), runtime_(budget) {}

std::string Evaluator::run() {
  root_ = runtime_.heap().make<Activation>(tree_.function.num_slots * sizeof(Datum),
                                           tree_.function.num_slots, Ref<Activation>());
  frame_ = root_;
  OutputBuffer out(runtime_.meter());
  out_ = &out;
  enter(tree_.scope);
  run_body(tree_.body);
  return out.take();
}

Datum Evaluator::load_from_context(const std::string& name) {
  for (const auto& [variable, value] : variables_) {
    if (variable == name) return runtime_.from_value(value);
  }
  if (const Builtin* builtin = find_builtin(name)) return Datum::builtin(builtin);
  return {};
}

void Evaluator::enter(const Scope& scope) {
  for (const SlotInit& init : scope.slots) {
    runtime_.meter().step();
    Datum& target = frame_->slots[init.slot];
    switch (init.from) {
      case SlotInit::From::kParameter:
        break;
      case SlotInit::From::kContext:
        target = load_from_context(init.name);
        break;
      case SlotInit::From::kOuter:
        target = slot(init.outer);
        break;
      case SlotInit::From::kUnset:
        target = Datum();
        break;
    }
  }
}

void Evaluator::leave(const Scope& scope) {
  for (const SlotInit& init : scope.slots) frame_->slots[init.slot] = Datum();
}

Datum& Evaluator::slot(SlotRef ref) {
  Activation* frame = frame_.get();
  for (uint32_t i = 0; i < ref.hops; ++i) frame = frame->outer.get();
  return frame->slots[ref.slot];
}

NamespaceObject& Evaluator::namespace_of(const Target& target) {
  const Datum& object = slot(target.slot);
  if (!object.is(Type::kNamespace)) {
    throw RenderError("cannot assign attribute on non-namespace object");
  }
  return object.as<NamespaceObject>();
}

void Evaluator::check_namespaces(const Target& target) {
  if (target.kind == Target::Kind::kNamespace) namespace_of(target);
  for (const Target& part : target.parts) check_namespaces(part);
}

void Evaluator::assign(const Target& target, const Datum& value) {
  switch (target.kind) {
    case Target::Kind::kName:
      slot(target.slot) = value;
      break;
    case Target::Kind::kNamespace:
      dict_set(runtime_, *namespace_of(target).attributes,
               runtime_.borrowed_string(target.attribute), value);
      break;
    case Target::Kind::kTuple: {
      Cursor cursor(runtime_, value);
      Datum item;
      for (const Target& part : target.parts) {
        if (!cursor.next(item)) {
          throw RenderError(
              fmt::format("not enough values to unpack (expected {})", target.parts.size()));
        }
        assign(part, item);
      }
      if (cursor.next(item)) {
        throw RenderError(
            fmt::format("too many values to unpack (expected {})", target.parts.size()));
      }
      break;
    }
  }
}

Evaluator::Flow Evaluator::run_body(const Body& body) {
  const LevelGuard guard(level_);
  for (const auto& statement : body) {
    if (const Flow flow = run_statement(*statement); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_statement(const Statement& statement) {
  runtime_.meter().step();
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::kText:
      out_->append(static_cast<const TextStatement&>(statement).text);
      return Flow::kNext;
    case StatementKind::kOutput: {
      const Datum value = evaluate(*static_cast<const OutputStatement&>(statement).value);
      if (value.is_string()) {
        out_->append(text_of(value));
      } else {
        out_->append(to_str(runtime_, value));
      }
      return Flow::kNext;
    }
    case StatementKind::kIf:
      return run_if(static_cast<const IfStatement&>(statement));
    case StatementKind::kFor:
      return run_for(static_cast<const ForStatement&>(statement));
    case StatementKind::kSet: {
      const auto& node = static_cast<const SetStatement&>(statement);
      check_namespaces(node.target);
      assign(node.target, evaluate(*node.value));
      return Flow::kNext;
    }
    case StatementKind::kSetBlock:
      return run_set_block(static_cast<const SetBlockStatement&>(statement));
    case StatementKind::kMacro: {
      const auto& node = static_cast<const MacroStatement&>(statement);
      assign(
          node.target,
          Datum(Type::kMacro, runtime_.heap().make<MacroObject>(0, &node.callable, frame_).get()));
      return Flow::kNext;
    }
    case StatementKind::kCallBlock:
      run_call_block(static_cast<const CallBlockStatement&>(statement));
      return Flow::kNext;
    case StatementKind::kFilterBlock:
      return run_filter_block(static_cast<const FilterBlockStatement&>(statement));
    case StatementKind::kWith:
      return run_with(static_cast<const WithStatement&>(statement));
    case StatementKind::kBlock:
      run_block(static_cast<const BlockStatement&>(statement));
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_if(const IfStatement& node) {
  for (const auto& [condition, body] : node.branches) {
    if (is_true(evaluate(*condition))) return run_body(body);
  }
  return run_body(node.otherwise);
}

Evaluator::Flow Evaluator::run_for(const ForStatement& node) {
  const Datum iterable = evaluate(*node.iterable);
  if (!node.recursive) return run_loop(node, iterable, 0, {});
  out_->append(render_recursive(node, iterable, 0, frame_));
  return Flow::kNext;
}

std::string Evaluator::render_recursive(const ForStatement& node, const Datum& iterable,
                                        int32_t depth0, Ref<Activation> closure) {
  const DepthGuard guard(runtime_.meter());
  const FrameSwitch frame(frame_,
                          runtime_.heap().make<Activation>(node.function.num_slots * sizeof(Datum),
                                                           node.function.num_slots, closure));
  OutputBuffer buffer(runtime_.meter());
  const Redirect redirect(out_, buffer);
  run_loop(node, iterable, depth0, std::move(closure));
  return buffer.take();
}

Evaluator::Flow Evaluator::run_loop(const ForStatement& node, const Datum& iterable, int32_t depth0,
                                    Ref<Activation> closure) {
  ForItems items(*this, node, iterable);
  Ref<LoopObject> loop;
  if (node.uses_loop) {
    loop = runtime_.heap().make<LoopObject>(0, &node, depth0);
    loop->source = &items;
    loop->closure = std::move(closure);
  }
  bool ran_through = false;  // a body cut short by break or continue does not count, as in Jinja
  Datum item;
  while (loop ? loop->advance(item) : items.next(item)) {
    assign(node.target, item);
    if (loop) frame_->slots[node.loop_slot] = Datum(Type::kLoop, loop.get());
    enter(node.body_scope);
    const Flow flow = run_body(node.body);
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNext) ran_through = true;
  }
  leave(node.body_scope);
  if (node.filter) leave(node.filter_scope);
  if (loop) loop->source = nullptr;
  if (ran_through || node.otherwise.empty()) return Flow::kNext;
  enter(node.otherwise_scope);
  const Flow flow = run_body(node.otherwise);
  leave(node.otherwise_scope);
  return flow;
}

Evaluator::Flow Evaluator::run_set_block(const SetBlockStatement& node) {
  enter(node.scope);
  OutputBuffer buffer(runtime_.meter());
  {
    const Redirect redirect(out_, buffer);
    if (const Flow flow = run_body(node.body); flow != Flow::kNext) return flow;
  }
  Datum text = runtime_.string(buffer.take());
  if (node.filter) text = evaluate_filter(static_cast<const FilterExpr&>(*node.filter), &text);
  check_namespaces(node.target);
  assign(node.target, text);
  leave(node.scope);
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_filter_block(const FilterBlockStatement& node) {
  enter(node.scope);
  OutputBuffer buffer(runtime_.meter());
  {
    const Redirect redirect(out_, buffer);
    if (const Flow flow = run_body(node.body); flow != Flow::kNext) return flow;
  }
  const Datum text = runtime_.string(buffer.take());
  out_->append(
      to_str(runtime_, evaluate_filter(static_cast<const FilterExpr&>(*node.filter), &text)));
  leave(node.scope);
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_with(const WithStatement& node) {
  enter(node.scope);
  for (size_t i = 0; i < node.targets.size(); ++i) {
    assign(node.targets[i], evaluate(*node.values[i]));
  }
  const Flow flow = run_body(node.body);
  leave(node.scope);
  return flow;
}

void Evaluator::run_call_block(const CallBlockStatement& node) {
  const Ref<MacroObject> caller = runtime_.heap().make<MacroObject>(0, &node.callable, frame_);
  Datum result;
  if (node.call == nullptr) {  // {% generation %}
    result = call_macro(*caller, {});
  } else {
    const auto& call_node = static_cast<const CallExpr&>(*node.call);
    const Datum callee = evaluate(*call_node.callee);
    Arguments arguments = evaluate_arguments(call_node.arguments);
    arguments.keyword.emplace_back("caller", Datum(Type::kMacro, caller.get()));
    result = call(callee, arguments);
  }
  out_->append(to_str(runtime_, result));
}

void Evaluator::run_block(const BlockStatement& node) {
  const DepthGuard guard(runtime_.meter());
  const FrameSwitch frame(
      frame_, runtime_.heap().make<Activation>(node.function.num_slots * sizeof(Datum),
                                               node.function.num_slots, Ref<Activation>()));
  enter(node.scope);
  for (const SlotInit& init : node.scope.slots) {  // what the top level has assigned comes first
    if (init.from != SlotInit::From::kContext) continue;
    for (const auto& [name, exported] : tree_.exports) {
      if (name == init.name && !root_->slots[exported].is_missing()) {
        frame_->slots[init.slot] = root_->slots[exported];
      }
    }
  }
  run_body(node.body);
}

Datum Evaluator::call_loop(LoopObject& loop, const Arguments& arguments) {
  if (!loop.statement->recursive) {
    throw RenderError("The loop must have the 'recursive' marker to be called recursively.");
  }
  if (arguments.positional.size() != 1) throw RenderError("loop() takes one argument");
  return runtime_.string(render_recursive(*loop.statement, arguments.positional.front(),
                                          loop.depth0 + 1, loop.closure));
}

Datum Evaluator::run_callable(const Callable& callable, const Ref<Activation>& frame) {
  const DepthGuard guard(runtime_.meter());
  const uint32_t line = line_;
  const FrameSwitch frame_switch(frame_, frame);
  OutputBuffer buffer(runtime_.meter());
  const Redirect redirect(out_, buffer);
  enter(callable.scope);
  fill_defaults(callable, *frame);
  run_body(callable.body);
  line_ = line;
  return runtime_.string(buffer.take());
}

}  // namespace quire::text::jinja
