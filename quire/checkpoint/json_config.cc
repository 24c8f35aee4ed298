#include "quire/checkpoint/json_config.h"

#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/base/mapped_file.h"
#include "quire/checkpoint/byte_cursor.h"
#include "quire/checkpoint/config_limits.h"

namespace quire::checkpoint {
namespace {

namespace json = boost::json;

constexpr size_t kMaxFileBytes = 100'000'000;

std::string describe(const json::value& value) {
  switch (value.kind()) {
    case json::kind::object:
      return "an object";
    case json::kind::array:
      return "a list";
    default:
      return printable(json::serialize(value));
  }
}

}  // namespace

JsonConfig::JsonConfig(std::string_view json, std::string_view where) : where_(where) {
  if (json.size() > kMaxFileBytes) {
    throw LoadError(where, "", fmt::format("at most {} bytes", kMaxFileBytes),
                    fmt::format("{}", json.size()));
  }
  json::parse_options options;
  options.max_depth = 32;
  json::error_code error;
  json::value value = json::parse({json.data(), json.size()}, error, {}, options);
  if (error) throw LoadError(where, "", "JSON", error.message());
  if (!value.is_object()) throw LoadError(where, "", "a JSON object", describe(value));
  object_ = std::make_shared<const json::object>(std::move(value.as_object()));
}

JsonConfig::JsonConfig(std::shared_ptr<const json::object> object, std::string where,
                       std::string prefix)
    : object_(std::move(object)), where_(std::move(where)), prefix_(std::move(prefix)) {}

JsonConfig JsonConfig::read_file(const std::string& path) {
  const MappedFile file(path);
  return JsonConfig({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                    path);
}

void JsonConfig::fail(std::string_view key, std::string_view expected,
                      std::string_view found) const {
  throw LoadError(where_, printable(full_key(key)), expected, found);
}

void JsonConfig::fail_on(std::string_view key, std::string_view expected,
                         const json::value& found) const {
  fail(key, expected, describe(found));
}

const json::value* JsonConfig::find(std::string_view key) const {
  const json::value* value = object_->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool JsonConfig::has(std::string_view key) const {
  return find(key) != nullptr;
}

int64_t JsonConfig::to_integer(const json::value& value, std::string_view key, int64_t low,
                               int64_t high) const {
  json::error_code error;
  const auto number =
      value.is_double() ? std::optional<int64_t>() : std::optional(value.to_number<int64_t>(error));
  if (error || !number || *number < low || *number > high) {
    fail_on(key, fmt::format("an integer from {} to {}", low, high), value);
  }
  return *number;
}

std::optional<int64_t> JsonConfig::integer(std::string_view key, int64_t low, int64_t high) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return to_integer(*value, key, low, high);
}

int64_t JsonConfig::required_integer(std::string_view key, int64_t low, int64_t high) const {
  const auto value = integer(key, low, high);
  if (!value) fail(key, fmt::format("an integer from {} to {}", low, high), "no such key");
  return *value;
}

std::optional<std::vector<int64_t>> JsonConfig::integers(std::string_view key, int64_t low,
                                                         int64_t high) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> result;
  if (const json::array* list = value->if_array()) {
    for (const json::value& item : *list) result.push_back(to_integer(item, key, low, high));
  } else {
    result.push_back(to_integer(*value, key, low, high));
  }
  return result;
}

std::optional<double> JsonConfig::number(std::string_view key, double low, double high) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail_on(key, "a number", *value);
  return checked_number(value->to_number<double>(), low, high, where_, full_key(key));
}

double JsonConfig::required_number(std::string_view key, double low, double high) const {
  const auto value = number(key, low, high);
  if (!value) fail(key, "a number", "no such key");
  return *value;
}

std::optional<bool> JsonConfig::boolean(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) fail_on(key, "true or false", *value);
  return value->as_bool();
}

std::optional<std::string> JsonConfig::string(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail_on(key, "a string", *value);
  return std::string(value->as_string());
}

std::optional<std::vector<std::string>> JsonConfig::strings(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) fail_on(key, "a list of strings", *value);
  std::vector<std::string> result;
  for (const json::value& item : value->as_array()) {
    if (!item.is_string()) fail_on(key, "a list of strings", item);
    result.emplace_back(item.as_string());
  }
  return result;
}

std::optional<JsonConfig> JsonConfig::object(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) fail_on(key, "an object", *value);
  return JsonConfig(std::shared_ptr<const json::object>(object_, &value->as_object()), where_,
                    full_key(key) + ".");
}

std::map<std::string, std::string> JsonConfig::required_string_map(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) fail(key, "an object", "no such key");
  if (!value->is_object()) fail_on(key, "an object", *value);
  std::map<std::string, std::string> result;
  for (const auto& [name, item] : value->as_object()) {
    if (!item.is_string()) fail_on(key, "strings", item);
    result.emplace(name, item.as_string());
  }
  return result;
}

}  // namespace quire::checkpoint
