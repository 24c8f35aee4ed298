// GgufMetadata: the key-value pairs of a GGUF file, checked when read and decoded when asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/checkpoint/byte_cursor.h"

namespace quire::checkpoint {

/// The value types of GGUF, by their number in the file.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// A value as it lies in the file. `payload` is the scalar, the string's bytes, or an array's
/// elements one after another (strings with their lengths before them).
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element_type = GgufType::kU8;  // arrays
  uint64_t count = 0;                     // arrays
  std::span<const std::byte> payload;
};

/// Values point into the file's bytes, so that reading it allocates nothing for its arrays. Every
/// accessor returns nothing for a key that is absent and throws LoadError naming file and key for
/// one whose type or range is wrong.
class GgufMetadata {
 public:
  /// Reads `count` pairs. Rejects duplicate keys, unknown types and arrays nested too deeply.
  GgufMetadata(ByteCursor& cursor, uint64_t count, std::string file);

  const GgufValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  size_t size() const { return entries_.size(); }
  const std::string& file() const { return file_; }

  /// Any integer type, within [low, high].
  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high) const;
  int64_t required_integer(std::string_view key, int64_t low, int64_t high) const;
  /// f32, f64 or an integer; always finite.
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  std::string_view required_string(std::string_view key) const;
  /// An array of strings, at most `most` of them.
  std::optional<std::vector<std::string>> strings(std::string_view key, uint64_t most) const;
  /// An array of any integer type whose elements fit an int32, at most `most` of them.
  std::optional<std::vector<int32_t>> integers(std::string_view key, uint64_t most) const;
  /// Elements of an array; nothing when the key is absent.
  std::optional<uint64_t> array_size(std::string_view key) const;

 private:
  struct Entry {
    std::string_view key;
    GgufValue value;
  };

  const GgufValue* find_array(std::string_view key, std::string_view expected, uint64_t most) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view found) const;

  std::string file_;
  std::vector<Entry> entries_;  // by key
};

}  // namespace quire::checkpoint
