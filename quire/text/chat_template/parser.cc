#include "quire/text/chat_template/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "quire/text/chat_template/expression_parser.h"
#include "quire/text/chat_template/render_error.h"
#include "quire/text/chat_template/resolver.h"

namespace quire::text::jinja {
namespace {

using EndNames = std::initializer_list<std::string_view>;
using StatementPtr = std::unique_ptr<Statement>;

template <typename Node>
std::unique_ptr<Node> make_statement(uint32_t line) {
  auto node = std::make_unique<Node>();
  node->line = line;
  return node;
}

class StatementParser {
 public:
  explicit StatementParser(std::vector<LexedToken> tokens)
      : tokens_(std::move(tokens)), expressions_(tokens_, nesting_) {}

  Body parse() { return parse_until({}); }

 private:
  Body parse_until(EndNames end_names);
  /// From a tag's remaining `%}` to a tag that begins with one of `end_names`, which is the current
  /// token then.
  Body parse_body(EndNames end_names);
  /// As parse_body with one end name, and takes that tag's name.
  Body parse_body_to(std::string_view end_name);
  void parse_statement(Body& body);
  StatementPtr parse_if();
  StatementPtr parse_for();
  StatementPtr parse_set();
  StatementPtr parse_macro();
  StatementPtr parse_call_block();
  StatementPtr parse_generation();
  StatementPtr parse_filter_block();
  StatementPtr parse_with();
  StatementPtr parse_block();
  void parse_print(Body& body);
  StatementPtr parse_loop_control(StatementKind kind);
  void parse_signature(Callable& callable);
  Target parse_target(std::string_view end_name, bool with_namespace);
  Target parse_target_part(bool with_namespace);
  Target parse_name_target();
  [[noreturn]] void fail_unknown(const LexedToken& tag) const;

  TokenStream tokens_;
  uint32_t nesting_ = 0;
  uint32_t loop_depth_ = 0;  // loops open in the current function
  ExpressionParser expressions_;
  std::set<std::string> block_names_;
};

Body StatementParser::parse_until(EndNames end_names) {
  Body body;
  while (!tokens_.at(Token::kEnd)) {
    const uint32_t line = tokens_.line();
    if (tokens_.at(Token::kData)) {
      auto node = make_statement<TextStatement>(line);
      node->text = tokens_.take().text;
      body.push_back(std::move(node));
    } else if (tokens_.at(Token::kVariableBegin)) {
      tokens_.take();
      auto node = make_statement<OutputStatement>(line);
      node->value = expressions_.parse_tuple();
      tokens_.expect(Token::kVariableEnd, "end of print statement");
      body.push_back(std::move(node));
    } else {
      tokens_.expect(Token::kBlockBegin, "begin of statement block");
      if (std::any_of(end_names.begin(), end_names.end(),
                      [&](std::string_view name) { return tokens_.at_name(name); })) {
        return body;
      }
      parse_statement(body);
      tokens_.expect(Token::kBlockEnd, "end of statement block");
    }
  }
  if (end_names.size() > 0) {
    tokens_.fail(fmt::format("Unexpected end of template. Jinja was looking for the tag '{}'.",
                             *(end_names.end() - 1)));
  }
  return body;
}

Body StatementParser::parse_body(EndNames end_names) {
  const NestingGuard guard(nesting_, tokens_);
  tokens_.skip_operator(":");
  tokens_.expect(Token::kBlockEnd, "end of statement block");
  return parse_until(end_names);
}

Body StatementParser::parse_body_to(std::string_view end_name) {
  Body body = parse_body({end_name});
  tokens_.take();
  return body;
}

void StatementParser::parse_statement(Body& body) {
  const LexedToken& tag = tokens_.current();
  if (tag.kind != Token::kName) tokens_.fail("tag name expected");
  struct Rule {
    std::string_view name;
    StatementPtr (StatementParser::*parse)();
  };
  static constexpr Rule kRules[] = {
      {"if", &StatementParser::parse_if},
      {"for", &StatementParser::parse_for},
      {"set", &StatementParser::parse_set},
      {"macro", &StatementParser::parse_macro},
      {"call", &StatementParser::parse_call_block},
      {"generation", &StatementParser::parse_generation},
      {"filter", &StatementParser::parse_filter_block},
      {"with", &StatementParser::parse_with},
      {"block", &StatementParser::parse_block},
  };
  for (const Rule& rule : kRules) {
    if (tag.text != rule.name) continue;
    body.push_back((this->*rule.parse)());
    return;
  }
  if (tag.text == "print") {
    parse_print(body);
  } else if (tag.text == "break") {
    body.push_back(parse_loop_control(StatementKind::kBreak));
  } else if (tag.text == "continue") {
    body.push_back(parse_loop_control(StatementKind::kContinue));
  } else {
    fail_unknown(tag);
  }
}

void StatementParser::fail_unknown(const LexedToken& tag) const {
  for (const std::string_view name : {"include", "import", "from", "extends", "autoescape"}) {
    if (tag.text == name) {
      tokens_.fail(fmt::format("the tag '{}' is not supported in chat templates", name));
    }
  }
  tokens_.fail(fmt::format("Encountered unknown tag '{}'.", tag.text));
}

StatementPtr StatementParser::parse_if() {
  auto node = make_statement<IfStatement>(tokens_.line());
  ++expressions_.soft_depth;
  do {
    tokens_.take();  // if, elif
    ExprPtr condition = expressions_.parse_tuple(false);
    Body body = parse_body({"elif", "else", "endif"});
    node->branches.emplace_back(std::move(condition), std::move(body));
  } while (tokens_.at_name("elif"));
  if (tokens_.take().text == "else") node->otherwise = parse_body_to("endif");
  --expressions_.soft_depth;
  return node;
}

StatementPtr StatementParser::parse_for() {
  auto node = make_statement<ForStatement>(tokens_.take().line);
  node->target = parse_target("in", false);
  node->filter_target = node->target;
  tokens_.expect_name("in");
  node->iterable = expressions_.parse_tuple(false, "recursive");
  if (tokens_.skip_name("if")) node->filter = expressions_.parse_expression();
  node->recursive = tokens_.skip_name("recursive");
  ++loop_depth_;
  node->body = parse_body({"endfor", "else"});
  --loop_depth_;
  if (tokens_.take().text == "else") node->otherwise = parse_body_to("endfor");
  return node;
}

StatementPtr StatementParser::parse_set() {
  const uint32_t line = tokens_.take().line;
  Target target = parse_target({}, true);
  if (tokens_.skip_operator("=")) {
    auto node = make_statement<SetStatement>(line);
    node->target = std::move(target);
    node->value = expressions_.parse_tuple();
    return node;
  }
  auto node = make_statement<SetBlockStatement>(line);
  node->target = std::move(target);
  if (tokens_.at_operator("|")) node->filter = expressions_.parse_filters(nullptr, false);
  node->body = parse_body_to("endset");
  return node;
}

Target StatementParser::parse_name_target() {
  Target target;
  target.line = tokens_.line();
  target.name = tokens_.expect(Token::kName, "name").text;
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
    if (target.name == constant) tokens_.fail(fmt::format("can't assign to '{}'", constant));
  }
  return target;
}

Target StatementParser::parse_target_part(bool with_namespace) {
  const NestingGuard guard(nesting_, tokens_);
  if (tokens_.skip_operator("(")) {
    Target target = parse_target({}, with_namespace);
    tokens_.expect_operator(")");
    return target;
  }
  Target target = parse_name_target();
  if (with_namespace && tokens_.skip_operator(".")) {
    target.kind = Target::Kind::kNamespace;
    target.attribute = tokens_.expect(Token::kName, "name").text;
  }
  return target;
}

Target StatementParser::parse_target(std::string_view end_name, bool with_namespace) {
  Target first = parse_target_part(with_namespace);
  if (!tokens_.at_operator(",")) return first;
  Target tuple;
  tuple.kind = Target::Kind::kTuple;
  tuple.line = first.line;
  tuple.parts.push_back(std::move(first));
  while (tokens_.skip_operator(",")) {
    if (tokens_.at_operator("=") || tokens_.at_operator(")") || tokens_.at(Token::kBlockEnd) ||
        (!end_name.empty() && tokens_.at_name(end_name))) {
      break;
    }
    tuple.parts.push_back(parse_target_part(with_namespace));
  }
  return tuple;
}

void StatementParser::parse_signature(Callable& callable) {
  tokens_.expect_operator("(");
  while (!tokens_.at_operator(")")) {
    if (!callable.parameters.empty()) tokens_.expect_operator(",");
    Target parameter = parse_name_target();
    for (const Target& other : callable.parameters) {
      if (other.name == parameter.name) {
        tokens_.fail(fmt::format("duplicate argument '{}'", parameter.name));
      }
    }
    if (tokens_.skip_operator("=")) {
      callable.defaults.push_back(expressions_.parse_expression());
    } else if (!callable.defaults.empty()) {
      tokens_.fail("non-default argument follows default argument");
    }
    callable.parameters.push_back(std::move(parameter));
  }
  tokens_.expect_operator(")");
}

StatementPtr StatementParser::parse_macro() {
  auto node = make_statement<MacroStatement>(tokens_.take().line);
  node->target = parse_name_target();
  node->callable.name = node->target.name;
  parse_signature(node->callable);
  const uint32_t loops = std::exchange(loop_depth_, 0);
  node->callable.body = parse_body_to("endmacro");
  loop_depth_ = loops;
  return node;
}

StatementPtr StatementParser::parse_call_block() {
  auto node = make_statement<CallBlockStatement>(tokens_.take().line);
  if (tokens_.at_operator("(")) parse_signature(node->callable);
  node->call = expressions_.parse_expression();
  if (node->call->kind != ExprKind::kCall) throw SyntaxError(node->line, "expected call");
  const uint32_t loops = std::exchange(loop_depth_, 0);
  node->callable.body = parse_body_to("endcall");
  loop_depth_ = loops;
  return node;
}

StatementPtr StatementParser::parse_generation() {
  auto node = make_statement<CallBlockStatement>(tokens_.take().line);
  const uint32_t loops = std::exchange(loop_depth_, 0);
  node->callable.body = parse_body_to("endgeneration");
  loop_depth_ = loops;
  return node;
}

StatementPtr StatementParser::parse_filter_block() {
  auto node = make_statement<FilterBlockStatement>(tokens_.take().line);
  node->filter = expressions_.parse_filters(nullptr, true);
  node->body = parse_body_to("endfilter");
  return node;
}

StatementPtr StatementParser::parse_with() {
  auto node = make_statement<WithStatement>(tokens_.take().line);
  while (!tokens_.at(Token::kBlockEnd)) {
    if (!node->targets.empty()) tokens_.expect_operator(",");
    node->targets.push_back(parse_target({}, false));
    tokens_.expect_operator("=");
    node->values.push_back(expressions_.parse_expression());
  }
  node->body = parse_body_to("endwith");
  return node;
}

StatementPtr StatementParser::parse_block() {
  auto node = make_statement<BlockStatement>(tokens_.take().line);
  node->name = tokens_.expect(Token::kName, "name").text;
  if (!block_names_.insert(node->name).second) {
    tokens_.fail(fmt::format("block '{}' defined twice", node->name));
  }
  tokens_.skip_name("scoped");
  tokens_.skip_name("required");
  const uint32_t loops = std::exchange(loop_depth_, 0);
  node->body = parse_body_to("endblock");
  loop_depth_ = loops;
  tokens_.skip_name(node->name);
  return node;
}

void StatementParser::parse_print(Body& body) {
  tokens_.take();
  bool first = true;
  while (!tokens_.at(Token::kBlockEnd)) {
    if (!first) tokens_.expect_operator(",");
    first = false;
    auto node = make_statement<OutputStatement>(tokens_.line());
    node->value = expressions_.parse_expression();
    body.push_back(std::move(node));
  }
}

StatementPtr StatementParser::parse_loop_control(StatementKind kind) {
  const LexedToken& tag = tokens_.take();
  if (loop_depth_ == 0) throw SyntaxError(tag.line, fmt::format("'{}' outside loop", tag.text));
  auto node = std::make_unique<Statement>(kind);
  node->line = tag.line;
  return node;
}

}  // namespace

TemplateTree parse_template(std::string_view source) {
  TemplateTree tree;
  tree.body = StatementParser(lex(source)).parse();
  resolve_names(tree);
  return tree;
}

}  // namespace quire::text::jinja
