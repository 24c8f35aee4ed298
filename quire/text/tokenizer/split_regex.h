// SplitRegex: a pre-tokenizer pattern in the dialect of HF (Oniguruma's), run by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quire::text {

/// A range of bytes of a text.
struct Piece {
  size_t begin = 0;
  size_t end = 0;
};

/// Immutable; may be used from several threads at once. Classes are those of Unicode 16.
class SplitRegex {
 public:
  /// Throws LoadError when the pattern does not compile or uses a construct that means something
  /// else in PCRE2 and is not translated.
  explicit SplitRegex(const std::string& pattern);
  ~SplitRegex();
  SplitRegex(SplitRegex&&) noexcept;
  SplitRegex& operator=(SplitRegex&&) noexcept;

  /// The working memory of matching, for one thread.
  class Matcher {
   public:
    explicit Matcher(const SplitRegex& regex);
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

    /// Appends all matches in `text`, which may hold bytes that are not UTF-8, from left to right,
    /// shifted by `offset`. Stack and memory are bounded; where a match passes those bounds there
    /// are no further matches.
    void find_all(std::string_view text, size_t offset, std::vector<Piece>& matches);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A pattern that matches exactly `literal`.
std::string escape_pattern(std::string_view literal);
/// The pattern in PCRE2's dialect. Throws LoadError for what is not translated.
std::string translate_pattern(std::string_view pattern);

}  // namespace quire::text
