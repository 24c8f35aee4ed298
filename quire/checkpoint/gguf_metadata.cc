#include "quire/checkpoint/gguf_metadata.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::checkpoint {
namespace {

constexpr int kMaxArrayDepth = 3;
constexpr uint64_t kSmallestPair = 8 + 4 + 1;  // an empty key, a type, one byte
constexpr std::array<std::string_view, 13> kTypeNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

/// Bytes of a scalar; 0 for strings and arrays.
uint64_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

std::string describe(const GgufValue& value) {
  const auto name = kTypeNames.at(static_cast<size_t>(value.type));
  if (value.type != GgufType::kArray) return std::string(name);
  return fmt::format("array of {} {}", value.count,
                     kTypeNames.at(static_cast<size_t>(value.element_type)));
}

GgufType read_type(ByteCursor& cursor, std::string_view file, std::string_view key) {
  const auto number = cursor.read<uint32_t>(key);
  if (number >= kTypeNames.size()) {
    throw LoadError(file, printable(key), "a value type from 0 to 12", fmt::format("{}", number));
  }
  return static_cast<GgufType>(number);
}

/// Moves `cursor` past the elements of an array whose header was read.
void skip_elements(ByteCursor& cursor, GgufType type, uint64_t count, std::string_view file,
                   std::string_view key, int depth) {
  const uint64_t smallest =
      type == GgufType::kArray ? 12 : (type == GgufType::kString ? 8 : scalar_bytes(type));
  if (count > cursor.remaining() / smallest) {
    throw LoadError(file, printable(key), fmt::format("an array of {} elements", count),
                    fmt::format("{} bytes before the end of the file", cursor.remaining()));
  }
  if (const uint64_t size = scalar_bytes(type); size != 0) {
    cursor.take(count * size, key);
  } else if (type == GgufType::kString) {
    for (uint64_t i = 0; i < count; ++i) cursor.read_string(key);
  } else {
    if (depth >= kMaxArrayDepth) {
      throw LoadError(file, printable(key), fmt::format("arrays at most {} deep", kMaxArrayDepth),
                      "deeper ones");
    }
    for (uint64_t i = 0; i < count; ++i) {
      const GgufType inner = read_type(cursor, file, key);
      const auto inner_count = cursor.read<uint64_t>(key);
      skip_elements(cursor, inner, inner_count, file, key, depth + 1);
    }
  }
}

GgufValue read_value(ByteCursor& cursor, std::string_view file, std::string_view key) {
  GgufValue value;
  value.type = read_type(cursor, file, key);
  if (value.type == GgufType::kString) {
    const auto text = cursor.read_string(key);
    value.payload = std::as_bytes(std::span(text));
  } else if (value.type == GgufType::kArray) {
    value.element_type = read_type(cursor, file, key);
    value.count = cursor.read<uint64_t>(key);
    ByteCursor start = cursor;
    skip_elements(cursor, value.element_type, value.count, file, key, 1);
    value.payload = start.take(cursor.position() - start.position(), key);
  } else {
    value.payload = cursor.take(scalar_bytes(value.type), key);
  }
  return value;
}

template <typename T>
T load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// The integer at the start of `bytes`; nothing when the type is no integer or passes int64.
std::optional<int64_t> load_integer(GgufType type, std::span<const std::byte> bytes) {
  switch (type) {
    case GgufType::kU8:
      return load<uint8_t>(bytes);
    case GgufType::kI8:
      return load<int8_t>(bytes);
    case GgufType::kU16:
      return load<uint16_t>(bytes);
    case GgufType::kI16:
      return load<int16_t>(bytes);
    case GgufType::kU32:
      return load<uint32_t>(bytes);
    case GgufType::kI32:
      return load<int32_t>(bytes);
    case GgufType::kI64:
      return load<int64_t>(bytes);
    case GgufType::kU64: {
      const auto value = load<uint64_t>(bytes);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

GgufMetadata::GgufMetadata(ByteCursor& cursor, uint64_t count, std::string file)
    : file_(std::move(file)) {
  if (count > cursor.remaining() / kSmallestPair) {
    throw LoadError(file_, "metadata count", fmt::format("{} pairs", count),
                    fmt::format("{} bytes before the end of the file", cursor.remaining()));
  }
  for (uint64_t i = 0; i < count; ++i) {
    const auto key = cursor.read_string(fmt::format("metadata key {}", i));
    entries_.push_back({key, read_value(cursor, file_, key)});
  }
  std::ranges::sort(entries_, {}, &Entry::key);
  const auto twice = std::ranges::adjacent_find(entries_, {}, &Entry::key);
  if (twice != entries_.end()) fail(twice->key, "one value", "two");
}

void GgufMetadata::fail(std::string_view key, std::string_view expected,
                        std::string_view found) const {
  throw LoadError(file_, printable(key), expected, found);
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto place = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
  return place != entries_.end() && place->key == key ? &place->value : nullptr;
}

std::optional<int64_t> GgufMetadata::integer(std::string_view key, int64_t low,
                                             int64_t high) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto expected = [&] { return fmt::format("an integer from {} to {}", low, high); };
  const auto number = load_integer(value->type, value->payload);
  if (!number) fail(key, expected(), describe(*value));
  if (*number < low || *number > high) fail(key, expected(), fmt::format("{}", *number));
  return number;
}

int64_t GgufMetadata::required_integer(std::string_view key, int64_t low, int64_t high) const {
  const auto value = integer(key, low, high);
  if (!value) fail(key, fmt::format("an integer from {} to {}", low, high), "no such key");
  return *value;
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  double result = 0.0;
  if (value->type == GgufType::kF32) {
    result = load<float>(value->payload);
  } else if (value->type == GgufType::kF64) {
    result = load<double>(value->payload);
  } else if (const auto whole = load_integer(value->type, value->payload)) {
    result = static_cast<double>(*whole);
  } else {
    fail(key, "a number", describe(*value));
  }
  if (!std::isfinite(result)) fail(key, "a finite number", fmt::format("{}", result));
  return result;
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) fail(key, "a bool", describe(*value));
  const auto byte = load<uint8_t>(value->payload);
  if (byte > 1) fail(key, "a bool (0 or 1)", fmt::format("{}", byte));
  return byte == 1;
}

std::optional<std::string_view> GgufMetadata::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) fail(key, "a string", describe(*value));
  return std::string_view(reinterpret_cast<const char*>(value->payload.data()),
                          value->payload.size());
}

std::string_view GgufMetadata::required_string(std::string_view key) const {
  const auto value = string(key);
  if (!value) fail(key, "a string", "no such key");
  return *value;
}

const GgufValue* GgufMetadata::find_array(std::string_view key, std::string_view expected,
                                          uint64_t most) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return nullptr;
  if (value->type != GgufType::kArray) fail(key, expected, describe(*value));
  if (value->count > most) {
    fail(key, fmt::format("at most {} elements", most), fmt::format("{}", value->count));
  }
  return value;
}

std::optional<std::vector<std::string>> GgufMetadata::strings(std::string_view key,
                                                              uint64_t most) const {
  const GgufValue* value = find_array(key, "an array of strings", most);
  if (value == nullptr) return std::nullopt;
  if (value->element_type != GgufType::kString) fail(key, "an array of strings", describe(*value));
  ByteCursor cursor(value->payload, file_);
  std::vector<std::string> result;
  result.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) result.emplace_back(cursor.read_string(key));
  return result;
}

std::optional<std::vector<int32_t>> GgufMetadata::integers(std::string_view key,
                                                           uint64_t most) const {
  const GgufValue* value = find_array(key, "an array of integers", most);
  if (value == nullptr) return std::nullopt;
  const uint64_t size = scalar_bytes(value->element_type);
  std::vector<int32_t> result;
  result.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto number =
        size == 0 ? std::nullopt
                  : load_integer(value->element_type, value->payload.subspan(i * size, size));
    if (!number) fail(key, "an array of integers", describe(*value));
    if (*number != static_cast<int32_t>(*number)) {
      fail(key, "32-bit integers", fmt::format("{}", *number));
    }
    result.push_back(static_cast<int32_t>(*number));
  }
  return result;
}

std::optional<uint64_t> GgufMetadata::array_size(std::string_view key) const {
  const GgufValue* value = find_array(key, "an array", std::numeric_limits<uint64_t>::max());
  if (value == nullptr) return std::nullopt;
  return value->count;
}

}  // namespace quire::checkpoint
