// ChatTemplate: renders a model's Jinja chat template to a prompt, inside budgets, without touching
// the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quire/base/result.h"

namespace quire::text {

/// A JSON-like value, as templates see the request: objects keep their order.
class Value {
 public:
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kString, kList, kDict };
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<std::string, Value>>;

  Value() = default;
  Value(bool value);
  Value(int64_t value);
  Value(double value);
  Value(std::string value);
  Value(const char* value);
  Value(List value);
  Value(Dict value);

  Kind kind() const { return kind_; }
  bool as_bool() const { return number_.boolean; }
  int64_t as_int() const { return number_.integer; }
  double as_float() const { return number_.floating; }
  const std::string& as_string() const { return *string_; }
  const List& as_list() const { return *list_; }
  const Dict& as_dict() const { return *dict_; }
  /// The value under `key` of a dict, or null.
  const Value* find(std::string_view key) const;

 private:
  Kind kind_ = Kind::kNone;
  union {
    bool boolean;
    int64_t integer = 0;
    double floating;
  } number_;
  std::shared_ptr<const std::string> string_;
  std::shared_ptr<const List> list_;
  std::shared_ptr<const Dict> dict_;
};

/// Bounds on one rendering; passing one is an Error of kind kInvalid that says which.
struct RenderBudget {
  int64_t max_operations = 1'000'000;
  int64_t max_output_bytes = int64_t{8} << 20;
  int64_t max_time_ms = 100;
  int32_t max_depth = 64;
  /// What strftime_now takes for the present, in seconds since 1970; the system's clock when
  /// absent.
  std::optional<int64_t> now_unix_s = {};
};

/// A parsed template; immutable, render() may be called from several threads at once.
class ChatTemplate {
 public:
  /// Throws LoadError with line and reason when `source` does not parse. `where` is for the
  /// message.
  ChatTemplate(std::string_view source, std::string_view where);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  /// Renders with `variables` as globals (messages, add_generation_prompt, bos_token, tools, ...),
  /// in the environment HF uses: trim_blocks, lstrip_blocks, loop controls, raise_exception,
  /// strftime_now, tojson as HF's. What the template raises is an Error with its message.
  Result<std::string> render(const Value::Dict& variables, const RenderBudget& budget = {}) const;
  /// True when the template reads `name` anywhere (e.g. "tools").
  bool mentions(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::text
