// Vocabulary: tokens by id, by content and by the bytes they stand for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/text/tokenizer_spec.h"

namespace quire::text {

/// Immutable. Ids without a token have no content and no bytes.
class Vocabulary {
 public:
  /// Throws LoadError when an added token does not agree with the vocabulary. `spec` must outlive
  /// the object: contents are views into it.
  explicit Vocabulary(const TokenizerSpec& spec);

  int32_t size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }
  /// Of an id inside the vocabulary: the bytes its characters stand for, or the content's own bytes
  /// when one of them stands for none.
  std::string_view bytes(int32_t id) const {
    const auto i = static_cast<size_t>(id);
    return std::string_view(bytes_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  bool is_special(int32_t id) const { return special_[static_cast<size_t>(id)]; }
  /// -1 when no token has this content.
  int32_t find_content(std::string_view content) const;
  /// The token that the model may use for `piece`: not an added one, nor one written in other
  /// characters than those of bytes. -1 when there is none.
  int32_t find_bytes(std::string_view piece) const;
  /// Bytes of the heap that the tables take, without the specification.
  int64_t heap_size() const;

 private:
  using Table = std::vector<int32_t>;  // open-addressed; ids, -1 is free

  std::string_view content(int32_t id) const { return (*contents_)[static_cast<size_t>(id)]; }
  template <typename TextOf>
  static int32_t find(const Table& table, std::string_view text, TextOf text_of);
  template <typename TextOf>
  static void insert(Table& table, int32_t id, TextOf text_of);

  const std::vector<std::string>* contents_;
  std::string bytes_;
  std::vector<size_t> offsets_;
  std::vector<bool> special_;
  Table by_content_;
  Table by_bytes_;
};

}  // namespace quire::text
