// Tokenizer: text to token ids and back, equal to HF tokenizers for the same specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/text/tokenizer_spec.h"

namespace quire::text {

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// Immutable after construction; encode and decode may be called from several threads at once.
class Tokenizer {
 public:
  /// Throws LoadError when the specification contradicts itself (a merge of unknown tokens, a bad
  /// pattern).
  explicit Tokenizer(TokenizerSpec spec);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// `add_special_tokens`: put the model's prefix and suffix (BOS) around the text.
  /// `parse_special`: special added tokens written in the text become their ids; off for text that
  /// users wrote. Linear in the text's length; no recursion.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens,
                              bool parse_special = true) const;
  /// As above, but special tokens that touch one of the `plain` ranges (ascending, disjoint) stay
  /// text; pre-tokenization and merges see the whole text as usual.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens,
                              std::span<const ByteRange> plain) const;
  /// Where `text` spells special tokens: ascending and disjoint, the longest of those that begin at
  /// one place.
  std::vector<ByteRange> special_spellings(std::string_view text) const;
  /// Invalid UTF-8 in the result is kept as bytes; use IncrementalDetokenizer or
  /// replace_invalid_utf8 to show it.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;
  /// The bytes one id stands for; empty for ids outside the vocabulary.
  std::string_view token_bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  /// -1 when no token has exactly this content.
  int32_t token_id(std::string_view content) const;
  int64_t vocab_size() const;
  /// Bytes that specification and tables take, regular expressions aside.
  int64_t heap_size() const;
  const TokenizerSpec& spec() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::text
