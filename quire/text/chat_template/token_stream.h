// TokenStream: the parser's position in the tokens, with the checks every rule makes.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "quire/text/chat_template/lexer.h"

namespace quire::text::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<LexedToken> tokens) : tokens_(std::move(tokens)) {}

  const LexedToken& current() const { return tokens_[position_]; }
  const LexedToken& look_ahead() const {
    return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
  }
  uint32_t line() const { return current().line; }
  bool at(Token kind) const { return current().kind == kind; }
  bool at_operator(std::string_view op) const {
    return at(Token::kOperator) && current().text == op;
  }
  bool at_name(std::string_view name) const { return at(Token::kName) && current().text == name; }

  /// The current token; moves past it. The end is never passed.
  const LexedToken& take() {
    const LexedToken& token = tokens_[position_];
    if (token.kind != Token::kEnd) ++position_;
    return token;
  }
  bool skip_operator(std::string_view op) {
    if (!at_operator(op)) return false;
    take();
    return true;
  }
  bool skip_name(std::string_view name) {
    if (!at_name(name)) return false;
    take();
    return true;
  }
  void expect_operator(std::string_view op) {
    if (!skip_operator(op)) fail_expected(op);
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail_expected(name);
  }
  const LexedToken& expect(Token kind, std::string_view what) {
    if (!at(kind)) fail_expected(what);
    return take();
  }
  [[noreturn]] void fail_expected(std::string_view what) const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::vector<LexedToken> tokens_;
  size_t position_ = 0;
};

}  // namespace quire::text::jinja
