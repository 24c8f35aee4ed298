// IncrementalDetokenizer: turns a stream of ids into text that never ends inside a code point.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quire/text/tokenizer.h"

namespace quire::text {

class IncrementalDetokenizer {
 public:
  IncrementalDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);

  /// Appends a token; returns the text that became whole, possibly empty. Bytes that can no longer
  /// become valid UTF-8 are replaced by U+FFFD as Python's decode(errors="replace") does.
  std::string push(int32_t id);
  /// The bytes still held back, replaced where they are not whole; nothing is held afterwards.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::string pending_;
};

/// Replaces every maximal invalid part by U+FFFD, as Python's bytes.decode("utf-8", "replace")
/// does.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace quire::text
