// The syntax tree of a template: expressions, statements, and the scopes that hold their variables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/objects.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/tests.h"

namespace quire::text::jinja {

/// Where a variable lives: slot `slot` of the function `hops` levels out.
struct SlotRef {
  uint32_t hops = 0;
  uint32_t slot = 0;
};

/// What a scope does to its slots when it is entered.
struct SlotInit {
  enum class From : uint8_t { kParameter, kContext, kOuter, kUnset };
  uint32_t slot = 0;
  From from = From::kUnset;
  SlotRef outer;     // kOuter
  std::string name;  // kContext
};

struct Scope {
  std::vector<SlotInit> slots;
};

/// A part of the template with slots of its own: the template, a macro, a call block, a block, a
/// recursive loop.
struct FunctionInfo {
  uint32_t num_slots = 0;
};

// ---- expressions

enum class ExprKind : uint8_t {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kNot,
  kNegate,
  kPlus,
  kBinary,
  kAnd,
  kOr,
  kCompare,
  kConcat,
  kConditional,
};

struct Expr {
  explicit Expr(ExprKind expr_kind) : kind(expr_kind) {}
  virtual ~Expr() = default;
  Expr(const Expr&) = delete;
  Expr& operator=(const Expr&) = delete;

  ExprKind kind;
  uint32_t line = 0;
  uint32_t height = 1;  // of the tree below, which bounds the evaluator's recursion
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstantExpr : Expr {
  ConstantExpr() : Expr(ExprKind::kConstant) {}
  std::unique_ptr<StringObject> text;  // what `value` refers to, of a string
  Datum value;
};

struct NameExpr : Expr {
  NameExpr() : Expr(ExprKind::kName) {}
  std::string name;
  SlotRef slot;
};

/// A tuple or list display, or the parts of a `~`; of an `and`, `or` its two sides; of not, -, +
/// its operand.
struct ListExpr : Expr {
  using Expr::Expr;
  std::vector<ExprPtr> items;
};

struct DictExpr : Expr {
  DictExpr() : Expr(ExprKind::kDict) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};

struct AttributeExpr : Expr {
  AttributeExpr() : Expr(ExprKind::kAttribute) {}
  ExprPtr object;
  std::string name;
};

struct ItemExpr : Expr {
  ItemExpr() : Expr(ExprKind::kItem) {}
  ExprPtr object;
  ExprPtr key;
};

/// object[start:stop:step]; a part left out is null.
struct SliceExpr : Expr {
  SliceExpr() : Expr(ExprKind::kSlice) {}
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr star;       // *args
  ExprPtr star_star;  // **kwargs
};

struct CallExpr : Expr {
  CallExpr() : Expr(ExprKind::kCall) {}
  ExprPtr callee;
  CallArguments arguments;
};

struct FilterExpr : Expr {
  FilterExpr() : Expr(ExprKind::kFilter) {}
  ExprPtr input;  // null in a filter block: its text
  std::string name;
  const Filter* filter = nullptr;  // null when unknown: an error once evaluated
  CallArguments arguments;
};

struct TestExpr : Expr {
  TestExpr() : Expr(ExprKind::kTest) {}
  ExprPtr input;
  std::string name;
  const Test* test = nullptr;
  CallArguments arguments;
};

struct BinaryExpr : Expr {
  BinaryExpr() : Expr(ExprKind::kBinary) {}
  BinaryOp op = BinaryOp::kAdd;
  ExprPtr left;
  ExprPtr right;
};

/// first op0 rest0 op1 rest1 ...
struct CompareExpr : Expr {
  CompareExpr() : Expr(ExprKind::kCompare) {}
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

struct ConditionalExpr : Expr {
  ConditionalExpr() : Expr(ExprKind::kConditional) {}
  ExprPtr condition;
  ExprPtr if_true;
  ExprPtr if_false;  // null: undefined
};

// ---- statements

/// What an assignment or a loop stores to.
struct Target {
  enum class Kind : uint8_t { kName, kNamespace, kTuple };
  Kind kind = Kind::kName;
  uint32_t line = 0;
  std::string name;
  std::string attribute;  // kNamespace
  SlotRef slot;
  std::vector<Target> parts;  // kTuple
};

enum class StatementKind : uint8_t {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kBlock,
  kBreak,
  kContinue,
};

struct Statement {
  explicit Statement(StatementKind statement_kind) : kind(statement_kind) {}
  virtual ~Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  StatementKind kind;
  uint32_t line = 0;
};
using Body = std::vector<std::unique_ptr<Statement>>;

struct TextStatement : Statement {
  TextStatement() : Statement(StatementKind::kText) {}
  std::string text;
};

struct OutputStatement : Statement {
  OutputStatement() : Statement(StatementKind::kOutput) {}
  ExprPtr value;
};

struct IfStatement : Statement {
  IfStatement() : Statement(StatementKind::kIf) {}
  std::vector<std::pair<ExprPtr, Body>> branches;  // if, elif, ...
  Body otherwise;
};

struct ForStatement : Statement {
  ForStatement() : Statement(StatementKind::kFor) {}
  Target target;
  Target filter_target;  // the same names in the filter's own scope
  ExprPtr iterable;
  ExprPtr filter;  // null without `if`
  Body body;
  Body otherwise;
  bool recursive = false;
  bool uses_loop = false;
  uint32_t loop_slot = 0;
  Scope filter_scope;
  Scope body_scope;
  Scope otherwise_scope;
  FunctionInfo function;  // of a recursive loop
};

struct SetStatement : Statement {
  SetStatement() : Statement(StatementKind::kSet) {}
  Target target;
  ExprPtr value;
};

struct SetBlockStatement : Statement {
  SetBlockStatement() : Statement(StatementKind::kSetBlock) {}
  Target target;
  ExprPtr filter;  // a chain of FilterExpr over the block's text, or null
  Body body;
  Scope scope;
};

/// Parameters and body of a macro or call block.
struct Callable {
  std::string name;  // empty for a call block
  std::vector<Target> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  Scope scope;
  FunctionInfo function;
  // Slots of the special variables, where the body reads them.
  std::optional<uint32_t> caller_slot;
  std::optional<uint32_t> varargs_slot;
  std::optional<uint32_t> kwargs_slot;
  bool explicit_caller = false;  // `caller` is one of the parameters
};

struct MacroStatement : Statement {
  MacroStatement() : Statement(StatementKind::kMacro) {}
  Target target;
  Callable callable;
};

/// {% call %}; without a call it is {% generation %}: its body runs as it would be called once.
struct CallBlockStatement : Statement {
  CallBlockStatement() : Statement(StatementKind::kCallBlock) {}
  ExprPtr call;  // a CallExpr, or null
  Callable callable;
};

struct FilterBlockStatement : Statement {
  FilterBlockStatement() : Statement(StatementKind::kFilterBlock) {}
  ExprPtr filter;
  Body body;
  Scope scope;
};

struct WithStatement : Statement {
  WithStatement() : Statement(StatementKind::kWith) {}
  std::vector<Target> targets;
  std::vector<ExprPtr> values;
  Body body;
  Scope scope;
};

struct BlockStatement : Statement {
  BlockStatement() : Statement(StatementKind::kBlock) {}
  std::string name;
  Body body;
  Scope scope;
  FunctionInfo function;
};

struct TemplateTree {
  Body body;
  Scope scope;
  FunctionInfo function;
  /// Slots of the names assigned at the top level, which blocks see.
  std::vector<std::pair<std::string, uint32_t>> exports;
  std::vector<std::string> names;  // every name read, sorted
};

}  // namespace quire::text::jinja
