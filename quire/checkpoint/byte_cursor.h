// ByteCursor: reads little-endian values from a file's bytes, checking every length against what is
// left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace quire::checkpoint {

/// Text from a file as it may stand in a message: cut to 80 bytes, all but printable ASCII escaped.
std::string printable(std::string_view text);

/// `a * b` into `product`; false when that passes 2^64 - 1.
inline bool checked_multiply(uint64_t a, uint64_t b, uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

/// Walks forward over bytes that outlive it. Nothing is allocated before its length is known to lie
/// within the file; a read past the end throws LoadError naming the file and `field`.
class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(file) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  T read(std::string_view field) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }
  /// The next `count` bytes.
  std::span<const std::byte> take(uint64_t count, std::string_view field);
  /// A u64 length and that many bytes.
  std::string_view read_string(std::string_view field);

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  uint64_t position_ = 0;
};

}  // namespace quire::checkpoint
