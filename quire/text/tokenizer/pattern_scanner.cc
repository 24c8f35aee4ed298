#include "quire/text/tokenizer/pattern_scanner.h"

#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

// How all these patterns divide code points: \p{L}, \p{N}, \s, and the rest.
constexpr uint8_t kLetter = UnicodeClasses::kLetter;
constexpr uint8_t kNumber = UnicodeClasses::kNumber;
constexpr uint8_t kSpace = UnicodeClasses::kSpace;
constexpr uint8_t kMark = 0;
constexpr uint8_t kEndOfText = 0xFF;
constexpr uint8_t kKinds = kLetter | kNumber | kSpace;

struct Unit {
  uint8_t kind;
  uint32_t length;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), classes_(UnicodeClasses::get()) {}

  Unit unit(size_t at) const {
    if (at >= text_.size()) return {kEndOfText, 0};
    const CodePoint point = code_point_at(text_, at);
    return {static_cast<uint8_t>(classes_.flags(point.value) & kKinds), point.length};
  }
  char byte(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  bool is_newline(size_t at) const { return byte(at) == '\r' || byte(at) == '\n'; }

  /// The end of the run of `kind` that begins at `at`.
  size_t run_end(size_t at, uint8_t kind) const {
    for (Unit next = unit(at); next.kind == kind; next = unit(at)) at += next.length;
    return at;
  }

  /// `\s+(?!\S)|\s+` on the run [at, end): all of it before the end of the text, else all but its
  /// last code point, which goes with what follows.
  size_t spaces(size_t at, size_t end) const {
    if (end == text_.size()) return end;
    const size_t last = end - code_point_before(text_, end).length;
    return last > at ? last : end;
  }

 private:
  std::string_view text_;
  const UnicodeClasses& classes_;
};

/// The length of 's, 't, 'm, 'd, 're, 've or 'll at `at`, or 0.
size_t contraction(const Scanner& scan, size_t at) {
  if (scan.byte(at) != '\'') return 0;
  const char first = scan.byte(at + 1);
  const char second = scan.byte(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const bool two =
      ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

/// As contraction(), but of any case; U+017F is a small s.
size_t caseless_contraction(const Scanner& scan, size_t at) {
  if (scan.byte(at) != '\'') return 0;
  const char first = lower(scan.byte(at + 1));
  const char second = lower(scan.byte(at + 2));
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (scan.byte(at + 1) == '\xC5' && scan.byte(at + 2) == '\xBF') return 3;
  const bool two =
      ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

size_t gpt2_match_end(std::string_view text, size_t at) {
  const Scanner scan(text);
  if (const size_t length = contraction(scan, at)) return at + length;
  Unit first = scan.unit(at);
  if (scan.byte(at) == ' ') {
    const Unit after = scan.unit(at + 1);
    if (after.kind != kSpace && after.kind != kEndOfText) first = {after.kind, 1 + after.length};
  }
  const size_t end = scan.run_end(at + first.length, first.kind);
  return first.kind == kSpace ? scan.spaces(at, end) : end;
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last newline of the run of spaces if it has one.
size_t spaces_or_newlines(const Scanner& scan, size_t at) {
  const size_t end = scan.run_end(at, kSpace);
  for (size_t i = end; i > at; --i) {
    if (scan.is_newline(i - 1)) return i;
  }
  return scan.spaces(at, end);
}

template <int kMaxDigits>
size_t llama3_match_end(std::string_view text, size_t at) {
  const Scanner scan(text);
  if (const size_t length = caseless_contraction(scan, at)) return at + length;
  const Unit first = scan.unit(at);
  const size_t next = at + first.length;
  if (first.kind == kLetter) return scan.run_end(next, kLetter);
  if (first.kind == kNumber) {
    size_t end = next;
    for (int digits = 1; digits < kMaxDigits; ++digits) {
      const Unit digit = scan.unit(end);
      if (digit.kind != kNumber) break;
      end += digit.length;
    }
    return end;
  }
  const Unit after = scan.unit(next);
  if (after.kind == kLetter && !scan.is_newline(at)) {
    return scan.run_end(next + after.length, kLetter);
  }
  if (first.kind == kMark || (scan.byte(at) == ' ' && after.kind == kMark)) {
    size_t end = scan.run_end(next, kMark);
    while (scan.is_newline(end)) ++end;
    return end;
  }
  return spaces_or_newlines(scan, at);
}

}  // namespace

MatchEnd find_scanner(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return gpt2_match_end;
  if (pattern == kLlama3Pattern) return llama3_match_end<3>;
  if (pattern == kQwen2Pattern) return llama3_match_end<1>;
  return nullptr;
}

}  // namespace quire::text
