// ExpressionParser: the grammar inside tags, one function a level of precedence.
#pragma once

#include <string>

#include "quire/text/chat_template/ast.h"
#include "quire/text/chat_template/token_stream.h"

namespace quire::text::jinja {

/// Levels of nesting a template may have, and the height of an expression.
inline constexpr uint32_t kMaxNesting = 100;
inline constexpr uint32_t kMaxHeight = 256;

/// Holds one level of the parser's nesting while it lives; throws SyntaxError past kMaxNesting.
class NestingGuard {
 public:
  NestingGuard(uint32_t& nesting, const TokenStream& tokens) : nesting_(nesting) {
    if (nesting_ >= kMaxNesting) tokens.fail("nested too deeply");
    ++nesting_;
  }
  ~NestingGuard() { --nesting_; }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;

 private:
  uint32_t& nesting_;
};

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, uint32_t& nesting) : tokens_(tokens), nesting_(nesting) {}

  /// `with_conditional` allows `a if b else c`.
  ExprPtr parse_expression(bool with_conditional = true);
  /// One expression, or several with commas: a tuple. Ends before the name `end_name`, if given.
  ExprPtr parse_tuple(bool with_conditional = true, std::string_view end_name = {},
                      bool in_parentheses = false);
  /// `|name(arguments)|...` over `input`; with `first_bare` the first has no bar before it.
  ExprPtr parse_filters(ExprPtr input, bool first_bare);
  /// While above 0, unknown filters and tests are errors of rendering, not of parsing.
  uint32_t soft_depth = 0;

 private:
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  bool take_compare_operator(CompareOp& op);
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_string();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_filters_and_tests(ExprPtr node);
  ExprPtr parse_dot(ExprPtr object);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_slice(ExprPtr object, ExprPtr start, uint32_t line);
  ExprPtr parse_call(ExprPtr callee);
  CallArguments parse_arguments();
  void parse_argument(CallArguments& arguments);
  ExprPtr parse_filter(ExprPtr input);
  ExprPtr parse_test(ExprPtr input);
  std::string parse_dotted_name(std::string_view what);
  bool at_test_argument() const;

  TokenStream& tokens_;
  uint32_t& nesting_;
};

/// `value` as a node.
ExprPtr make_constant(Datum value, uint32_t line);
ExprPtr make_text_constant(std::string text, uint32_t line);

}  // namespace quire::text::jinja
