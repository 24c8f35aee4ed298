#include "quire/server/chat_messages.h"

#include <fmt/format.h>

#include "quire/llm/json_value.h"

namespace quire::server {
namespace {

namespace json = boost::json;

Result<std::string> join_parts(const json::array& parts, size_t index) {
  std::string text;
  for (const json::value& part : parts) {
    const json::object* object = part.if_object();
    const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
    const json::value* content = object == nullptr ? nullptr : object->if_contains("text");
    if (part.is_string()) content = &part;
    const bool is_text =
        part.is_string() || (type != nullptr && (*type == "text" || *type == "input_text"));
    if (!is_text || content == nullptr || !content->is_string()) {
      return invalid(fmt::format(
          "text content parts in message {} (other kinds are not supported by this server)",
          index));
    }
    if (&part != &parts.front()) text += '\n';
    text += std::string_view(content->get_string());
  }
  return text;
}

Result<text::Value> normalise(const json::value& message, size_t index) {
  const json::object* object = message.if_object();
  const json::value* role = object == nullptr ? nullptr : object->if_contains("role");
  if (role == nullptr || !role->is_string() || role->get_string().empty()) {
    return invalid(fmt::format("message {} to be an object with a role", index));
  }
  text::Value::Dict dict;
  dict.emplace_back("role",
                    *role == "developer" ? std::string("system") : std::string(role->get_string()));
  const json::value* content = object->if_contains("content");
  const json::value* calls = object->if_contains("tool_calls");
  if (content == nullptr || content->is_null()) {
    if (*role != "assistant" || calls == nullptr || !calls->is_array()) {
      return invalid(fmt::format("content in message {}", index));
    }
    dict.emplace_back("content", text::Value());
  } else if (content->is_string()) {
    dict.emplace_back("content", std::string(content->get_string()));
  } else if (content->is_array()) {
    auto text = join_parts(content->get_array(), index);
    if (!text.ok()) return text.error();
    dict.emplace_back("content", std::move(text).value());
  } else {
    return invalid(
        fmt::format("the content of message {} to be a string or a list of parts", index));
  }
  for (const auto& [key, value] : *object) {
    if (key == "role" || key == "content") continue;
    dict.emplace_back(std::string(key), llm::to_value(value));
  }
  return text::Value(std::move(dict));
}

}  // namespace

Result<text::Value::List> normalise_messages(const json::array& messages) {
  text::Value::List list;
  for (size_t i = 0; i < messages.size(); ++i) {
    auto message = normalise(messages[i], i);
    if (!message.ok()) return message.error();
    list.push_back(std::move(message).value());
  }
  return list;
}

}  // namespace quire::server
