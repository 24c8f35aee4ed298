// AddedTokenMatcher: finds added tokens in a text and applies their flags, as HF does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quire/text/tokenizer.h"
#include "quire/text/tokenizer_spec.h"

namespace quire::text {

/// A part of a text: an added token, or text between such.
struct Segment {
  static constexpr int32_t kText = -1;
  size_t begin = 0;
  size_t end = 0;
  int32_t id = kText;
};

/// Immutable; may be used from several threads at once.
class AddedTokenMatcher {
 public:
  /// `tokens` whose content is empty are never found; of equal contents the first counts.
  explicit AddedTokenMatcher(std::span<const AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  /// Appends the segments of `text` in order. Special tokens are skipped where they are found, so
  /// that they stay text, if they touch one of the `plain` ranges (ascending, disjoint). Of tokens
  /// that begin at one place the longest is found. The time is linear in the text, with the longest
  /// token's length as the factor.
  void split(std::string_view text, std::span<const ByteRange> plain,
             std::vector<Segment>& segments) const;
  /// Appends where tokens are spelled, whatever their flags: ascending and disjoint.
  void spellings(std::string_view text, std::vector<ByteRange>& ranges) const;
  /// Bytes of the heap that tokens and trie take.
  int64_t heap_size() const;

 private:
  struct Match {
    const AddedToken* token = nullptr;
    size_t begin = 0;
    size_t end = 0;
  };

  Match find(std::string_view text, size_t from) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};                // bytes that a token begins with
  std::unordered_map<uint64_t, uint32_t> edges_;  // node << 8 | byte -> node, of a trie
  std::vector<int32_t> token_at_;                 // node -> index of the token ending there, or -1
};

}  // namespace quire::text
