#include "quire/text/chat_template/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/literals.h"
#include "quire/text/chat_template/render_error.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

/// With "\n" for every kind of line end, and without the last one.
std::string normalize_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') continue;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<LexedToken> run() {
    while (position_ < source_.size()) lex_root();
    add(Token::kEnd);
    return std::move(tokens_);
  }

 private:
  void lex_root();
  void lex_comment(uint32_t line);
  void lex_raw(uint32_t line);
  void lex_tag(bool is_block);
  bool at_tag_end(bool is_block);
  void lex_in_tag();
  void lex_name();
  void lex_string();
  void lex_operator();
  void balance(std::string_view op);

  LexedToken& add(Token kind) {
    LexedToken& token = tokens_.emplace_back();
    token.kind = kind;
    token.line = line_;
    return token;
  }
  void add_data(std::string_view data) {
    if (!data.empty()) add(Token::kData).text = std::string(data);
  }
  bool at(std::string_view what) const { return source_.substr(position_).starts_with(what); }
  /// Moves to `end`, counting lines.
  void move_to(size_t end) {
    line_ += static_cast<uint32_t>(std::count(source_.begin() + static_cast<ptrdiff_t>(position_),
                                              source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    if (end > position_) line_starting_ = source_[end - 1] == '\n';
    position_ = end;
  }
  size_t skip_space(size_t from) const {
    while (from < source_.size()) {
      size_t next = from;
      if (!is_space(decode_utf8(source_, next))) break;
      from = next;
    }
    return from;
  }
  std::string_view trim_before_tag(std::string_view data, char sign, bool is_variable) const;
  bool match_close(size_t at, std::string_view close, bool allow_plus, bool trim,
                   size_t& end) const;
  bool match_raw(size_t& end) const;
  bool match_endraw(size_t at, char& sign, size_t& end) const;
  char sign_after_open(size_t open) const {
    if (open + 2 >= source_.size()) return 0;
    const char c = source_[open + 2];
    return c == '-' || c == '+' ? c : 0;
  }

  std::string_view source_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;  // what was lexed last ended a line
  std::string balance_;        // closing brackets still to come
  std::vector<LexedToken> tokens_;
};

/// What remains of the data before a tag: '-' takes all whitespace, lstrip_blocks the blanks of the
/// tag's own line.
std::string_view Lexer::trim_before_tag(std::string_view data, char sign, bool is_variable) const {
  if (sign == '-') return strip(data, StripSide::kRight);
  if (sign == '+' || is_variable) return data;
  const size_t newline = data.rfind('\n');
  const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
  if (line_begin == 0 && !line_starting_) return data;
  return strip(data.substr(line_begin), StripSide::kBoth).empty() ? data.substr(0, line_begin)
                                                                  : data;
}

/// Matches a tag's end at `at`: `-` before it takes the whitespace after it, trim_blocks one
/// newline.
bool Lexer::match_close(size_t at, std::string_view close, bool allow_plus, bool trim,
                        size_t& end) const {
  const std::string_view rest = source_.substr(at);
  if (rest.starts_with(close)) {
    end = at + close.size();
    if (trim && end < source_.size() && source_[end] == '\n') ++end;
    return true;
  }
  if (rest.empty() || !rest.substr(1).starts_with(close)) return false;
  if (rest[0] == '-') {
    end = skip_space(at + 1 + close.size());
    return true;
  }
  if (allow_plus && rest[0] == '+') {
    end = at + 1 + close.size();
    return true;
  }
  return false;
}

/// Matches `{% raw %}` at the position.
bool Lexer::match_raw(size_t& end) const {
  const size_t name = skip_space(position_ + 2 + (sign_after_open(position_) != 0 ? 1 : 0));
  if (!source_.substr(name).starts_with("raw")) return false;
  return match_close(skip_space(name + 3), "%}", false, false, end);
}

bool Lexer::match_endraw(size_t at, char& sign, size_t& end) const {
  sign = sign_after_open(at);
  const size_t name = skip_space(at + 2 + (sign != 0 ? 1 : 0));
  if (!source_.substr(name).starts_with("endraw")) return false;
  return match_close(skip_space(name + 6), "%}", true, true, end);
}

void Lexer::lex_root() {
  size_t open = position_;
  while (true) {
    open = source_.find('{', open);
    if (open == std::string_view::npos || open + 1 >= source_.size()) {
      add_data(source_.substr(position_));
      move_to(source_.size());
      return;
    }
    const char c = source_[open + 1];
    if (c == '%' || c == '{' || c == '#') break;
    ++open;
  }
  const char kind = source_[open + 1];
  const char sign = sign_after_open(open);
  add_data(trim_before_tag(source_.substr(position_, open - position_), sign, kind == '{'));
  move_to(open);
  const uint32_t line = line_;
  size_t end = 0;
  if (kind == '%' && match_raw(end)) {
    move_to(end);
    lex_raw(line);
    return;
  }
  move_to(open + 2 + (sign != 0 ? 1 : 0));
  if (kind == '#') {
    lex_comment(line);
  } else {
    add(kind == '{' ? Token::kVariableBegin : Token::kBlockBegin);
    lex_tag(kind == '%');
  }
}

void Lexer::lex_comment(uint32_t line) {
  for (size_t i = position_; i < source_.size(); ++i) {
    size_t end = 0;
    if (match_close(i, "#}", true, true, end)) {
      move_to(end);
      return;
    }
  }
  throw SyntaxError(line, "Missing end of comment tag");
}

void Lexer::lex_raw(uint32_t line) {
  for (size_t open = source_.find("{%", position_); open != std::string_view::npos;
       open = source_.find("{%", open + 1)) {
    char sign = 0;
    size_t end = 0;
    if (!match_endraw(open, sign, end)) continue;
    add_data(trim_before_tag(source_.substr(position_, open - position_), sign, false));
    move_to(end);
    return;
  }
  throw SyntaxError(line, "Missing end of raw directive");
}

bool Lexer::at_tag_end(bool is_block) {
  size_t end = 0;
  if (!balance_.empty() ||
      !match_close(position_, is_block ? "%}" : "}}", is_block, is_block, end)) {
    return false;
  }
  add(is_block ? Token::kBlockEnd : Token::kVariableEnd);
  move_to(end);
  return true;
}

void Lexer::lex_tag(bool is_block) {
  while (position_ < source_.size()) {
    if (at_tag_end(is_block)) return;
    lex_in_tag();
  }
}

void Lexer::lex_in_tag() {
  if (const size_t end = skip_space(position_); end != position_) {
    move_to(end);
    return;
  }
  LexedToken number;
  number.line = line_;
  size_t end = position_;
  if (scan_number(source_, end, line_, number)) {
    tokens_.push_back(std::move(number));
    move_to(end);
    return;
  }
  const char c = source_[position_];
  size_t next = position_;
  const char32_t code_point = decode_utf8(source_, next);
  if (c == '_' || is_alpha(code_point) || is_numeric(code_point)) {
    lex_name();
  } else if (c == '\'' || c == '"') {
    lex_string();
  } else {
    lex_operator();
  }
}

void Lexer::lex_name() {
  size_t end = position_;
  size_t next = position_;
  const bool starts_well = source_[position_] == '_' || is_alpha(decode_utf8(source_, next));
  while (end < source_.size()) {
    next = end;
    const char32_t c = decode_utf8(source_, next);
    if (c != '_' && !is_alnum(c)) break;
    end = next;
  }
  if (!starts_well) throw SyntaxError(line_, "Invalid character in identifier");
  add(Token::kName).text = std::string(source_.substr(position_, end - position_));
  move_to(end);
}

void Lexer::lex_string() {
  const char quote = source_[position_];
  size_t end = position_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) {
    throw SyntaxError(line_, fmt::format("unexpected char {}: a string without an end", quote));
  }
  const uint32_t line = line_;
  add(Token::kString).text = unescape(source_.substr(position_ + 1, end - position_ - 1), line);
  move_to(end + 1);
}

void Lexer::lex_operator() {
  for (const std::string_view op : kOperators) {
    if (!at(op)) continue;
    balance(op);
    add(Token::kOperator).text = std::string(op);
    move_to(position_ + op.size());
    return;
  }
  size_t next = position_;
  decode_utf8(source_, next);
  throw SyntaxError(
      line_, fmt::format("unexpected char '{}'", source_.substr(position_, next - position_)));
}

void Lexer::balance(std::string_view op) {
  switch (op[0]) {
    case '(':
      balance_ += ')';
      break;
    case '[':
      balance_ += ']';
      break;
    case '{':
      balance_ += '}';
      break;
    case ')':
    case ']':
    case '}':
      if (balance_.empty()) throw SyntaxError(line_, fmt::format("unexpected '{}'", op));
      if (balance_.back() != op[0]) {
        throw SyntaxError(line_,
                          fmt::format("unexpected '{}', expected '{}'", op, balance_.back()));
      }
      balance_.pop_back();
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<LexedToken> lex(std::string_view source) {
  const std::string normalized = normalize_lines(source);
  return Lexer(normalized).run();
}

std::string describe(const LexedToken& token) {
  switch (token.kind) {
    case Token::kData:
      return "template data";
    case Token::kVariableBegin:
      return "begin of print statement";
    case Token::kVariableEnd:
      return "end of print statement";
    case Token::kBlockBegin:
      return "begin of statement block";
    case Token::kBlockEnd:
      return "end of statement block";
    case Token::kString:
      return fmt::format("string '{}'", token.text);
    case Token::kEnd:
      return "end of template";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace quire::text::jinja
