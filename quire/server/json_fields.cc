#include "quire/server/json_fields.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace quire::server {
namespace {

// Clients send 5, 5.0 and (some) 5u for the same integer.
std::optional<int64_t> as_integer(const boost::json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) {
    if (value.get_uint64() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return std::nullopt;
    return static_cast<int64_t>(value.get_uint64());
  }
  if (value.is_double()) {
    const double number = value.get_double();
    if (number == std::floor(number) && std::abs(number) < 9e15)
      return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

// The beginning of the value's JSON: it may be as long as the body.
std::string shown(const boost::json::value& value) {
  constexpr size_t kMaxShown = 77;
  char bytes[kMaxShown + 3];
  boost::json::serializer serializer;
  serializer.reset(&value);
  const std::string_view text = serializer.read(bytes);
  if (text.size() <= kMaxShown) return std::string(text);
  return std::string(cut_utf8(text, kMaxShown)) + "...";
}

}  // namespace

std::string_view cut_utf8(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::optional<int32_t> as_id(const boost::json::value& value) {
  if (!value.is_int64() && !value.is_uint64()) return std::nullopt;
  const auto integer = as_integer(value);
  if (!integer || *integer < 0 || *integer > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return static_cast<int32_t>(*integer);
}

JsonFields::JsonFields(const boost::json::object& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const boost::json::value* JsonFields::find(std::string_view name) const {
  const boost::json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void JsonFields::fail(std::string_view name, std::string_view expected) {
  if (error_) return;
  const boost::json::value* value = object_.if_contains(name);
  const std::string found = value == nullptr ? "nothing" : shown(*value);
  error_ = invalid(fmt::format("{}{}: expected {}, found {}", prefix_, name, expected, found),
                   prefix_ + std::string(name));
}

std::optional<bool> JsonFields::boolean(std::string_view name) {
  const boost::json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  fail(name, "true or false");
  return std::nullopt;
}

std::optional<int64_t> JsonFields::integer(std::string_view name, int64_t min, int64_t max) {
  const boost::json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value);
  if (number && *number >= min && *number <= max) return number;
  fail(name, fmt::format("an integer from {} to {}", min, max));
  return std::nullopt;
}

std::optional<double> JsonFields::number(std::string_view name, double min, double max) {
  const boost::json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const double number = value->to_number<double>();
    if (std::isfinite(number) && number >= min && number <= max) return number;
  }
  fail(name, fmt::format("a number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<std::string> JsonFields::string(std::string_view name) {
  const boost::json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  fail(name, "a string");
  return std::nullopt;
}

std::vector<std::string> JsonFields::strings(std::string_view name, size_t max_count) {
  const boost::json::value* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {std::string(value->get_string())};
  const std::string expected = fmt::format("a string or a list of at most {} strings", max_count);
  if (!value->is_array() || value->get_array().size() > max_count) {
    fail(name, expected);
    return {};
  }
  std::vector<std::string> list;
  for (const boost::json::value& item : value->get_array()) {
    if (!item.is_string()) {
      fail(name, expected);
      return {};
    }
    list.emplace_back(item.get_string());
  }
  return list;
}

std::vector<int32_t> JsonFields::ids(std::string_view name) {
  const boost::json::value* value = find(name);
  if (value == nullptr) return {};
  std::vector<int32_t> list;
  if (value->is_array()) {
    for (const boost::json::value& item : value->get_array()) {
      const auto id = as_id(item);
      if (!id) break;
      list.push_back(*id);
    }
    if (list.size() == value->get_array().size()) return list;
  }
  fail(name, "a list of token ids");
  return {};
}

}  // namespace quire::server
