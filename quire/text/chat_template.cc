#include "quire/text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "quire/base/error.h"
#include "quire/text/chat_template/evaluator.h"
#include "quire/text/chat_template/parser.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text {
namespace {

constexpr size_t kMaxSourceBytes = size_t{1} << 20;

}  // namespace

Value::Value(bool value) : kind_(Kind::kBool) {
  number_.boolean = value;
}
Value::Value(int64_t value) : kind_(Kind::kInt) {
  number_.integer = value;
}
Value::Value(double value) : kind_(Kind::kFloat) {
  number_.floating = value;
}
Value::Value(std::string value)
    : kind_(Kind::kString), string_(std::make_shared<const std::string>(std::move(value))) {}
Value::Value(const char* value) : Value(std::string(value)) {}
Value::Value(List value)
    : kind_(Kind::kList), list_(std::make_shared<const List>(std::move(value))) {}
Value::Value(Dict value)
    : kind_(Kind::kDict), dict_(std::make_shared<const Dict>(std::move(value))) {}

const Value* Value::find(std::string_view key) const {
  if (kind_ != Kind::kDict) return nullptr;
  for (const auto& [name, value] : *dict_) {
    if (name == key) return &value;
  }
  return nullptr;
}

struct ChatTemplate::Impl {
  jinja::TemplateTree tree;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string_view where)
    : impl_(std::make_unique<Impl>()) {
  if (source.size() > kMaxSourceBytes) {
    throw LoadError(where, "chat template", fmt::format("at most {} bytes", kMaxSourceBytes),
                    fmt::format("{} bytes", source.size()));
  }
  if (!jinja::is_valid_utf8(source)) {
    throw LoadError(where, "chat template", "UTF-8", "malformed bytes");
  }
  try {
    impl_->tree = jinja::parse_template(source);
  } catch (const jinja::SyntaxError& error) {
    throw LoadError(where, fmt::format("chat template, line {}: {}", error.line, error.what()));
  }
}

ChatTemplate::~ChatTemplate() = default;

Result<std::string> ChatTemplate::render(const Value::Dict& variables,
                                         const RenderBudget& budget) const {
  jinja::Evaluator evaluator(impl_->tree, variables, budget);
  try {
    return evaluator.run();
  } catch (const jinja::RaisedByTemplate& error) {
    return invalid(error.what());
  } catch (const jinja::RenderError& error) {
    return invalid(fmt::format("chat template, line {}: {}", evaluator.line(), error.what()));
  }
}

bool ChatTemplate::mentions(std::string_view name) const {
  const auto& names = impl_->tree.names;
  return std::binary_search(names.begin(), names.end(), name, std::less<>());
}

}  // namespace quire::text
