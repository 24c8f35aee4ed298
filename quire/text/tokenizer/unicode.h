// Code points of UTF-8 text and the Unicode classes that tokenizer rules are written in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace quire::text {

/// One code point, or one byte that is not part of valid UTF-8 (value kInvalidByte, length 1).
struct CodePoint {
  char32_t value = 0;
  uint32_t length = 0;
};

inline constexpr char32_t kInvalidByte = 0x110000;

/// Length of the maximal prefix of `bytes` that is, or may still become, one code point, and
/// whether it is one. Of bytes that are neither, length is what one U+FFFD stands for (Unicode
/// 15.0, section 3.9, "substitution of maximal subparts"). `bytes` must not be empty.
struct Utf8Unit {
  enum class State : uint8_t { kWhole, kTruncated, kInvalid };
  uint32_t length = 0;
  State state = State::kInvalid;
};
Utf8Unit utf8_unit(std::string_view bytes);

/// As code_point_at() for a byte that is not ASCII.
CodePoint long_code_point_at(std::string_view text, size_t at);
/// The code point that begins at `at`, which must lie inside the text.
inline CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte < 0x80 ? CodePoint{byte, 1} : long_code_point_at(text, at);
}
/// The code point that ends before `end`, which must not be 0.
CodePoint code_point_before(std::string_view text, size_t end);

/// General categories and properties of Unicode 16, whatever version the system's tables have.
class UnicodeClasses {
 public:
  enum Flag : uint8_t {
    kLetter = 1,   // L
    kNumber = 2,   // N
    kSpace = 4,    // White_Space
    kNumeric = 8,  // N of Unicode 17, by which the Digits rule of HF splits
    kWord = 16,    // Alphabetic, M, Nd, Pc, Join_Control
  };

  static const UnicodeClasses& get();

  uint8_t flags(char32_t value) const {
    return value < kInvalidByte ? blocks_[index_[value >> 8] * size_t{256} + (value & 255)]
                                : uint8_t{0};
  }

 private:
  UnicodeClasses();
  std::array<uint16_t, 0x1100> index_{};
  std::vector<uint8_t> blocks_;
};

/// A code point of the same general category and UTF-8 length that is older than Unicode 14, for
/// code points assigned later and for U+180E (which PCRE2's \s takes for a space); else `value`.
char32_t stand_in(char32_t value);

}  // namespace quire::text
