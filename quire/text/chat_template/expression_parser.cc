#include "quire/text/chat_template/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/node_height.h"
#include "quire/text/chat_template/render_error.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

ExprPtr make_binary(BinaryOp op, ExprPtr left, ExprPtr right, uint32_t line) {
  auto node = std::make_unique<BinaryExpr>();
  node->op = op;
  node->left = std::move(left);
  node->right = std::move(right);
  const Expr* l = node->left.get();
  const Expr* r = node->right.get();
  return finish(std::move(node), line, {l, r});
}

}  // namespace

void TokenStream::fail_expected(std::string_view what) const {
  if (at(Token::kEnd)) fail(fmt::format("unexpected end of template, expected '{}'", what));
  fail(fmt::format("expected token '{}', got {}", what, describe(current())));
}

void TokenStream::fail(const std::string& message) const {
  throw SyntaxError(line(), message);
}

ExprPtr make_constant(Datum value, uint32_t line) {
  auto node = std::make_unique<ConstantExpr>();
  node->value = std::move(value);
  return finish(std::move(node), line, {});
}

ExprPtr make_text_constant(std::string text, uint32_t line) {
  auto node = std::make_unique<ConstantExpr>();
  node->text = std::make_unique<StringObject>(std::move(text), false);
  node->text->length = static_cast<int64_t>(count_code_points(node->text->text));
  node->value = Datum(Type::kString, node->text.get());
  return finish(std::move(node), line, {});
}

ExprPtr ExpressionParser::parse_expression(bool with_conditional) {
  const NestingGuard guard(nesting_, tokens_);
  const uint32_t line = tokens_.line();
  ExprPtr value = parse_or();
  while (with_conditional && tokens_.skip_name("if")) {
    auto node = std::make_unique<ConditionalExpr>();
    ++soft_depth;
    node->if_true = std::move(value);
    node->condition = parse_or();
    if (tokens_.skip_name("else")) node->if_false = parse_expression();
    --soft_depth;
    const Expr* parts[] = {node->condition.get(), node->if_true.get(), node->if_false.get()};
    value = finish(std::move(node), line, {parts[0], parts[1], parts[2]});
  }
  return value;
}

ExprPtr ExpressionParser::parse_tuple(bool with_conditional, std::string_view end_name,
                                      bool in_parentheses) {
  const uint32_t line = tokens_.line();
  const auto at_end = [&] {
    return tokens_.at(Token::kVariableEnd) || tokens_.at(Token::kBlockEnd) ||
           tokens_.at_operator(")") || (!end_name.empty() && tokens_.at_name(end_name));
  };
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (!at_end()) {
    items.push_back(parse_expression(with_conditional));
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items.front());
  if (!is_tuple && !in_parentheses) {
    tokens_.fail(fmt::format("Expected an expression, got {}", describe(tokens_.current())));
  }
  return make_list(ExprKind::kTuple, std::move(items), line);
}

ExprPtr ExpressionParser::parse_or() {
  const uint32_t line = tokens_.line();
  ExprPtr left = parse_and();
  while (tokens_.skip_name("or")) {
    left = make_pair(ExprKind::kOr, std::move(left), parse_and(), line);
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  const uint32_t line = tokens_.line();
  ExprPtr left = parse_not();
  while (tokens_.skip_name("and")) {
    left = make_pair(ExprKind::kAnd, std::move(left), parse_not(), line);
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!tokens_.at_name("not")) return parse_compare();
  const NestingGuard guard(nesting_, tokens_);
  const uint32_t line = tokens_.take().line;
  return make_unary(ExprKind::kNot, parse_not(), line);
}

bool ExpressionParser::take_compare_operator(CompareOp& op) {
  struct Symbol {
    std::string_view text;
    CompareOp op;
  };
  constexpr Symbol kSymbols[] = {{"==", CompareOp::kEq}, {"!=", CompareOp::kNe},
                                 {"<", CompareOp::kLt},  {"<=", CompareOp::kLe},
                                 {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  if (tokens_.skip_name("in")) {
    op = CompareOp::kIn;
    return true;
  }
  const LexedToken& next = tokens_.look_ahead();
  if (tokens_.at_name("not") && next.kind == Token::kName && next.text == "in") {
    tokens_.take();
    tokens_.take();
    op = CompareOp::kNotIn;
    return true;
  }
  for (const Symbol& symbol : kSymbols) {
    if (tokens_.skip_operator(symbol.text)) {
      op = symbol.op;
      return true;
    }
  }
  return false;
}

ExprPtr ExpressionParser::parse_compare() {
  const uint32_t line = tokens_.line();
  ExprPtr first = parse_sum();
  CompareOp op{};
  if (!take_compare_operator(op)) return first;
  auto node = std::make_unique<CompareExpr>();
  node->height = first->height + 1;
  node->first = std::move(first);
  do {
    ExprPtr operand = parse_sum();
    node->height = std::max(node->height, operand->height + 1);
    node->rest.emplace_back(op, std::move(operand));
  } while (take_compare_operator(op));
  return finish(std::move(node), line, {});
}

ExprPtr ExpressionParser::parse_sum() {
  const uint32_t line = tokens_.line();
  ExprPtr left = parse_concat();
  while (tokens_.at_operator("+") || tokens_.at_operator("-")) {
    const BinaryOp op = tokens_.take().text == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
    left = make_binary(op, std::move(left), parse_concat(), line);
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const uint32_t line = tokens_.line();
  std::vector<ExprPtr> parts;
  parts.push_back(parse_product());
  while (tokens_.skip_operator("~")) parts.push_back(parse_product());
  if (parts.size() == 1) return std::move(parts.front());
  return make_list(ExprKind::kConcat, std::move(parts), line);
}

ExprPtr ExpressionParser::parse_product() {
  const uint32_t line = tokens_.line();
  ExprPtr left = parse_power();
  while (true) {
    BinaryOp op{};
    if (tokens_.skip_operator("*")) {
      op = BinaryOp::kMul;
    } else if (tokens_.skip_operator("/")) {
      op = BinaryOp::kDiv;
    } else if (tokens_.skip_operator("//")) {
      op = BinaryOp::kFloorDiv;
    } else if (tokens_.skip_operator("%")) {
      op = BinaryOp::kMod;
    } else {
      return left;
    }
    left = make_binary(op, std::move(left), parse_power(), line);
  }
}

ExprPtr ExpressionParser::parse_power() {
  const uint32_t line = tokens_.line();
  ExprPtr left = parse_unary(true);
  while (tokens_.skip_operator("**")) {  // from left to right, unlike Python
    left = make_binary(BinaryOp::kPow, std::move(left), parse_unary(true), line);
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  const uint32_t line = tokens_.line();
  ExprPtr node;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const NestingGuard guard(nesting_, tokens_);
    const ExprKind kind = tokens_.take().text == "-" ? ExprKind::kNegate : ExprKind::kPlus;
    node = make_unary(kind, parse_unary(false), line);
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr ExpressionParser::parse_primary() {
  const LexedToken& token = tokens_.current();
  switch (token.kind) {
    case Token::kName:
      return parse_name();
    case Token::kString:
      return parse_string();
    case Token::kInteger:
      tokens_.take();
      return make_constant(Datum::integer(token.integer), token.line);
    case Token::kFloat:
      tokens_.take();
      return make_constant(Datum::real(token.floating), token.line);
    case Token::kOperator:
      if (token.text == "[") return parse_list();
      if (token.text == "{") return parse_dict();
      if (tokens_.skip_operator("(")) {
        ExprPtr inside = parse_tuple(true, {}, true);
        tokens_.expect_operator(")");
        return inside;
      }
      break;
    default:
      break;
  }
  tokens_.fail(fmt::format("unexpected {}", describe(token)));
}

ExprPtr ExpressionParser::parse_name() {
  const LexedToken& token = tokens_.take();
  if (token.text == "true" || token.text == "True") {
    return make_constant(Datum::boolean(true), token.line);
  }
  if (token.text == "false" || token.text == "False") {
    return make_constant(Datum::boolean(false), token.line);
  }
  if (token.text == "none" || token.text == "None") {
    return make_constant(Datum::none(), token.line);
  }
  auto node = std::make_unique<NameExpr>();
  node->name = token.text;
  return finish(std::move(node), token.line, {});
}

ExprPtr ExpressionParser::parse_string() {
  const uint32_t line = tokens_.line();
  std::string text;
  while (tokens_.at(Token::kString)) text += tokens_.take().text;
  return make_text_constant(std::move(text), line);
}

ExprPtr ExpressionParser::parse_list() {
  const uint32_t line = tokens_.line();
  tokens_.expect_operator("[");
  std::vector<ExprPtr> items;
  while (!tokens_.at_operator("]")) {
    items.push_back(parse_expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("]");
  return make_list(ExprKind::kList, std::move(items), line);
}

ExprPtr ExpressionParser::parse_dict() {
  const uint32_t line = tokens_.line();
  tokens_.expect_operator("{");
  auto node = std::make_unique<DictExpr>();
  while (!tokens_.at_operator("}")) {
    ExprPtr key = parse_expression();
    tokens_.expect_operator(":");
    ExprPtr value = parse_expression();
    node->height = std::max({node->height, key->height + 1, value->height + 1});
    node->items.emplace_back(std::move(key), std::move(value));
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("}");
  return finish(std::move(node), line, {});
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (tokens_.at_operator(".")) {
      node = parse_dot(std::move(node));
    } else if (tokens_.at_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (tokens_.at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (tokens_.at_operator("|")) {
      node = parse_filters(std::move(node), false);
    } else if (tokens_.at_name("is")) {
      node = parse_test(std::move(node));
    } else if (tokens_.at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_dot(ExprPtr object) {
  const uint32_t line = tokens_.take().line;
  const Expr* below = object.get();
  if (tokens_.at(Token::kInteger)) {
    auto node = std::make_unique<ItemExpr>();
    node->object = std::move(object);
    node->key = make_constant(Datum::integer(tokens_.take().integer), line);
    return finish(std::move(node), line, {below});
  }
  auto node = std::make_unique<AttributeExpr>();
  node->object = std::move(object);
  node->name = tokens_.expect(Token::kName, "name or number").text;
  return finish(std::move(node), line, {below});
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
  const uint32_t line = tokens_.take().line;
  if (tokens_.at_operator(":")) return parse_slice(std::move(object), nullptr, line);
  ExprPtr key = parse_expression();
  if (tokens_.at_operator(":")) return parse_slice(std::move(object), std::move(key), line);
  if (tokens_.at_operator(",")) {
    std::vector<ExprPtr> keys;
    keys.push_back(std::move(key));
    while (tokens_.skip_operator(",")) keys.push_back(parse_expression());
    key = make_list(ExprKind::kTuple, std::move(keys), line);
  }
  tokens_.expect_operator("]");
  auto node = std::make_unique<ItemExpr>();
  node->object = std::move(object);
  node->key = std::move(key);
  const Expr* parts[] = {node->object.get(), node->key.get()};
  return finish(std::move(node), line, {parts[0], parts[1]});
}

ExprPtr ExpressionParser::parse_slice(ExprPtr object, ExprPtr start, uint32_t line) {
  auto node = std::make_unique<SliceExpr>();
  node->object = std::move(object);
  node->start = std::move(start);
  tokens_.expect_operator(":");
  const auto part_follows = [&] { return !tokens_.at_operator(":") && !tokens_.at_operator("]"); };
  if (part_follows()) node->stop = parse_expression();
  if (tokens_.skip_operator(":") && part_follows()) node->step = parse_expression();
  tokens_.expect_operator("]");
  const Expr* parts[] = {node->object.get(), node->start.get(), node->stop.get(), node->step.get()};
  return finish(std::move(node), line, {parts[0], parts[1], parts[2], parts[3]});
}

}  // namespace quire::text::jinja
