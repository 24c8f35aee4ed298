// The parts of ExpressionParser with arguments: calls, filters, tests.
#include <fmt/format.h>

#include "quire/text/chat_template/expression_parser.h"
#include "quire/text/chat_template/node_height.h"
#include "quire/text/chat_template/render_error.h"

namespace quire::text::jinja {

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  const uint32_t line = tokens_.line();
  auto node = std::make_unique<CallExpr>();
  node->callee = std::move(callee);
  node->arguments = parse_arguments();
  raise_height(*node, node->arguments);
  const Expr* below = node->callee.get();
  return finish(std::move(node), line, {below});
}

CallArguments ExpressionParser::parse_arguments() {
  tokens_.expect_operator("(");
  CallArguments arguments;
  while (!tokens_.at_operator(")")) {
    parse_argument(arguments);
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator(")");
  return arguments;
}

void ExpressionParser::parse_argument(CallArguments& arguments) {
  const auto check = [&](bool valid) {
    if (!valid) tokens_.fail("invalid syntax for function call expression");
  };
  if (tokens_.skip_operator("*")) {
    check(!arguments.star && !arguments.star_star);
    arguments.star = parse_expression();
  } else if (tokens_.skip_operator("**")) {
    check(!arguments.star_star);
    arguments.star_star = parse_expression();
  } else if (tokens_.at(Token::kName) && tokens_.look_ahead().kind == Token::kOperator &&
             tokens_.look_ahead().text == "=") {
    check(!arguments.star_star);
    std::string name = tokens_.take().text;
    tokens_.take();
    for (const auto& [other, value] : arguments.keyword) {
      if (other == name) tokens_.fail(fmt::format("keyword argument repeated: {}", name));
    }
    arguments.keyword.emplace_back(std::move(name), parse_expression());
  } else {
    check(!arguments.star && !arguments.star_star && arguments.keyword.empty());
    arguments.positional.push_back(parse_expression());
  }
}

std::string ExpressionParser::parse_dotted_name(std::string_view what) {
  std::string name = tokens_.expect(Token::kName, what).text;
  while (tokens_.skip_operator(".")) name += "." + tokens_.expect(Token::kName, what).text;
  return name;
}

ExprPtr ExpressionParser::parse_filters(ExprPtr input, bool first_bare) {
  if (first_bare) input = parse_filter(std::move(input));
  while (tokens_.skip_operator("|")) input = parse_filter(std::move(input));
  return input;
}

ExprPtr ExpressionParser::parse_filter(ExprPtr input) {
  const uint32_t line = tokens_.line();
  auto node = std::make_unique<FilterExpr>();
  node->input = std::move(input);
  node->name = parse_dotted_name("name");
  node->filter = find_filter(node->name);
  if (node->filter == nullptr && soft_depth == 0) {
    throw SyntaxError(line, fmt::format("No filter named '{}'.", node->name));
  }
  if (tokens_.at_operator("(")) node->arguments = parse_arguments();
  raise_height(*node, node->arguments);
  const Expr* below = node->input.get();
  return finish(std::move(node), line, {below});
}

bool ExpressionParser::at_test_argument() const {
  switch (tokens_.current().kind) {
    case Token::kString:
    case Token::kInteger:
    case Token::kFloat:
      return true;
    case Token::kName:
      return !tokens_.at_name("else") && !tokens_.at_name("or") && !tokens_.at_name("and");
    case Token::kOperator:
      return tokens_.at_operator("[") || tokens_.at_operator("{");
    default:
      return false;
  }
}

ExprPtr ExpressionParser::parse_test(ExprPtr input) {
  const uint32_t line = tokens_.take().line;
  const bool negated = tokens_.skip_name("not");
  auto node = std::make_unique<TestExpr>();
  node->input = std::move(input);
  node->name = parse_dotted_name("name");
  node->test = find_test(node->name);
  if (node->test == nullptr && soft_depth == 0) {
    throw SyntaxError(line, fmt::format("No test named '{}'.", node->name));
  }
  if (tokens_.at_operator("(")) {
    node->arguments = parse_arguments();
  } else if (at_test_argument()) {
    if (tokens_.at_name("is")) tokens_.fail("You cannot chain multiple tests with is");
    node->arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  raise_height(*node, node->arguments);
  const Expr* below = node->input.get();
  ExprPtr result = finish(std::move(node), line, {below});
  return negated ? make_unary(ExprKind::kNot, std::move(result), line) : std::move(result);
}

}  // namespace quire::text::jinja
