// Lexer: cuts a template's source into data and the tokens inside its tags, with Jinja's whitespace
// control.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::text::jinja {

enum class Token : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct LexedToken {
  Token kind = Token::kEnd;
  uint32_t line = 1;
  std::string text;  // data, name, operator, or a string literal unescaped
  int64_t integer = 0;
  double floating = 0;
};

/// Lexes with trim_blocks, lstrip_blocks and without a trailing newline. Ends with a kEnd token.
/// Throws SyntaxError.
std::vector<LexedToken> lex(std::string_view source);

/// How a message names the token.
std::string describe(const LexedToken& token);

}  // namespace quire::text::jinja
