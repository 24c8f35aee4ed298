#include "quire/llm/json_value.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

namespace quire::llm {
namespace {

using text::Value;

void set(Value::Dict& variables, std::string_view name, Value value) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found != variables.end()) {
    found->second = std::move(value);
  } else {
    variables.emplace_back(std::string(name), std::move(value));
  }
}

Value to_dict(const boost::json::object& object) {
  Value::Dict dict;
  dict.reserve(object.size());
  for (const auto& member : object) {
    dict.emplace_back(std::string(member.key()), to_value(member.value()));
  }
  return dict;
}

}  // namespace

Value to_value(const boost::json::value& json) {
  switch (json.kind()) {
    case boost::json::kind::null:
      return {};
    case boost::json::kind::bool_:
      return json.get_bool();
    case boost::json::kind::int64:
      return int64_t{json.get_int64()};
    case boost::json::kind::uint64: {
      const uint64_t number = json.get_uint64();
      if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return static_cast<int64_t>(number);
      }
      return static_cast<double>(number);
    }
    case boost::json::kind::double_:
      return json.get_double();
    case boost::json::kind::string: {
      const auto& text = json.get_string();
      return std::string(text.data(), text.size());
    }
    case boost::json::kind::array: {
      Value::List list;
      list.reserve(json.get_array().size());
      for (const auto& item : json.get_array()) list.push_back(to_value(item));
      return list;
    }
    case boost::json::kind::object:
      return to_dict(json.get_object());
  }
  return {};
}

Result<Value::Dict> chat_variables(const boost::json::value& request, const Value::Dict& defaults) {
  if (!request.is_object()) return invalid("a chat request is a JSON object");
  const boost::json::object& fields = request.get_object();
  const boost::json::value* messages = fields.if_contains("messages");
  if (messages == nullptr || !messages->is_array()) {
    return invalid("messages: expected a list of messages", "messages");
  }
  Value::Dict variables = {{"messages", to_value(*messages)},
                           {"tools", Value()},
                           {"documents", Value()},
                           {"add_generation_prompt", Value(true)}};
  for (const auto& [name, value] : defaults) set(variables, name, value);
  for (const std::string_view name :
       {"tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}) {
    if (const auto* value = fields.if_contains(name)) set(variables, name, to_value(*value));
  }
  if (const auto* extra = fields.if_contains("chat_template_kwargs"); extra && !extra->is_null()) {
    if (!extra->is_object()) {
      return invalid("chat_template_kwargs: expected an object", "chat_template_kwargs");
    }
    for (const auto& member : extra->get_object()) {
      set(variables, std::string_view(member.key().data(), member.key().size()),
          to_value(member.value()));
    }
  }
  return variables;
}

}  // namespace quire::llm
