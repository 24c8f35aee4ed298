// Evaluator: runs a template's syntax tree once, writing its text within the budgets.
#pragma once

#include <string>

#include "quire/text/chat_template/ast.h"
#include "quire/text/chat_template/loop.h"
#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

/// The text a template, a macro or a block has written so far; counted as live memory.
class OutputBuffer {
 public:
  explicit OutputBuffer(Meter& meter) : meter_(meter) {}
  ~OutputBuffer() { meter_.release(text_.size()); }
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  void append(std::string_view text) {
    meter_.step_bytes(text.size());
    meter_.check_output(text_.size() + text.size());
    meter_.allocate(text.size());
    text_ += text;
  }
  std::string take() {
    meter_.release(text_.size());
    return std::exchange(text_, {});
  }

 private:
  Meter& meter_;
  std::string text_;
};

/// Bounds the evaluator's own recursion: trees below trees, through macros.
class LevelGuard {
 public:
  explicit LevelGuard(int32_t& level) : level_(level) {
    if (level_ >= kMaxLevel) throw RenderError("the template nests too deeply");
    ++level_;
  }
  ~LevelGuard() { --level_; }
  LevelGuard(const LevelGuard&) = delete;
  LevelGuard& operator=(const LevelGuard&) = delete;

 private:
  static constexpr int32_t kMaxLevel = 1200;
  int32_t& level_;
};

class Evaluator {
 public:
  /// `variables` and `tree` outlive the evaluator.
  Evaluator(const TemplateTree& tree, const Value::Dict& variables, const RenderBudget& budget);

  /// Renders the whole template. Throws RenderError.
  std::string run();
  /// The line of the statement being run, for messages.
  uint32_t line() const { return line_; }

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  friend class ForItems;

  // Statements.
  Flow run_body(const Body& body);
  Flow run_statement(const Statement& statement);
  Flow run_if(const IfStatement& node);
  Flow run_for(const ForStatement& node);
  Flow run_loop(const ForStatement& node, const Datum& iterable, int32_t depth0,
                Ref<Activation> closure);
  Flow run_set_block(const SetBlockStatement& node);
  Flow run_filter_block(const FilterBlockStatement& node);
  Flow run_with(const WithStatement& node);
  void run_call_block(const CallBlockStatement& node);
  void run_block(const BlockStatement& node);
  std::string render_recursive(const ForStatement& node, const Datum& iterable, int32_t depth0,
                               Ref<Activation> closure);

  void enter(const Scope& scope);
  void leave(const Scope& scope);
  void assign(const Target& target, const Datum& value);
  void check_namespaces(const Target& target);
  NamespaceObject& namespace_of(const Target& target);
  Datum& slot(SlotRef ref);
  Datum load_from_context(const std::string& name);

  // Expressions.
  Datum evaluate(const Expr& expression);
  Datum evaluate_name(const NameExpr& node);
  Datum evaluate_sequence(const ListExpr& node);
  Datum evaluate_dict(const DictExpr& node);
  Datum evaluate_slice(const SliceExpr& node);
  Datum evaluate_filter(const FilterExpr& node, const Datum* block_text);
  bool evaluate_test(const TestExpr& node);
  bool evaluate_compare(const CompareExpr& node);
  Datum evaluate_concat(const ListExpr& node);
  Datum evaluate_conditional(const ConditionalExpr& node);
  Arguments evaluate_arguments(const CallArguments& arguments);

  // Calls.
  Datum call(const Datum& callee, const Arguments& arguments);
  /// loop(items) of a recursive loop.
  Datum call_loop(LoopObject& loop, const Arguments& arguments);
  Datum call_macro(const MacroObject& macro, const Arguments& arguments);
  void bind_parameters(const Callable& callable, const Arguments& arguments, Activation& frame);
  void bind_special(const Callable& callable, const Arguments& arguments, Activation& frame);
  void fill_defaults(const Callable& callable, Activation& frame);
  /// Runs `callable`'s body in `frame` and returns its text.
  Datum run_callable(const Callable& callable, const Ref<Activation>& frame);

  const TemplateTree& tree_;
  const Value::Dict& variables_;
  Runtime runtime_;
  Ref<Activation> root_;
  Ref<Activation> frame_;
  OutputBuffer* out_ = nullptr;
  uint32_t line_ = 1;
  int32_t level_ = 0;
};

/// A global function of every template, or null.
const Builtin* find_builtin(std::string_view name);

}  // namespace quire::text::jinja
