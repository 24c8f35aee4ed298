#include "quire/text/tokenizer/vocabulary.h"

#include <bit>
#include <functional>
#include <limits>

#include "quire/base/error.h"
#include "quire/text/tokenizer/byte_alphabet.h"
#include "quire/text/tokenizer/heap_bytes.h"

namespace quire::text {
namespace {

constexpr int32_t kFree = -1;

}  // namespace

template <typename TextOf>
int32_t Vocabulary::find(const Table& table, std::string_view text, TextOf text_of) {
  const size_t mask = table.size() - 1;
  for (size_t slot = std::hash<std::string_view>()(text) & mask;; slot = (slot + 1) & mask) {
    const int32_t id = table[slot];
    if (id == kFree || text_of(id) == text) return id;
  }
}

template <typename TextOf>
void Vocabulary::insert(Table& table, int32_t id, TextOf text_of) {
  const size_t mask = table.size() - 1;
  const std::string_view text = text_of(id);
  size_t slot = std::hash<std::string_view>()(text) & mask;
  while (table[slot] != kFree) {
    if (text_of(table[slot]) == text) return;  // the first of equal tokens counts
    slot = (slot + 1) & mask;
  }
  table[slot] = id;
}

Vocabulary::Vocabulary(const TokenizerSpec& spec) : contents_(&spec.vocab) {
  if (spec.vocab.size() >= size_t{std::numeric_limits<int32_t>::max()} / 4) {
    throw LoadError("tokenizer", "vocab", "fewer entries", std::to_string(spec.vocab.size()));
  }
  special_.resize(spec.vocab.size());
  std::vector<bool> added(spec.vocab.size());
  for (const AddedToken& token : spec.added_tokens) {
    const auto id = static_cast<size_t>(token.id);
    if (token.id < 0 || id >= spec.vocab.size() || spec.vocab[id] != token.content) {
      throw LoadError("tokenizer", "added token " + token.content, "its content in the vocabulary",
                      "another at id " + std::to_string(token.id));
    }
    added[id] = true;
    if (token.special) special_[id] = true;
  }
  by_content_.assign(std::bit_ceil(2 * spec.vocab.size() + 1), kFree);
  by_bytes_ = by_content_;
  offsets_.reserve(spec.vocab.size() + 1);
  offsets_.push_back(0);
  std::vector<bool> in_alphabet(spec.vocab.size());
  for (size_t id = 0; id < spec.vocab.size(); ++id) {
    in_alphabet[id] = append_bytes_of(spec.vocab[id], bytes_);
    if (!in_alphabet[id]) bytes_ += spec.vocab[id];
    offsets_.push_back(bytes_.size());
  }
  for (int32_t id = 0; id < size(); ++id) {
    if (content(id).empty()) continue;
    insert(by_content_, id, [this](int32_t other) { return content(other); });
    if (in_alphabet[static_cast<size_t>(id)] && !added[static_cast<size_t>(id)]) {
      insert(by_bytes_, id, [this](int32_t other) { return bytes(other); });
    }
  }
}

int32_t Vocabulary::find_content(std::string_view text) const {
  return find(by_content_, text, [this](int32_t id) { return content(id); });
}

int32_t Vocabulary::find_bytes(std::string_view piece) const {
  return find(by_bytes_, piece, [this](int32_t id) { return bytes(id); });
}

int64_t Vocabulary::heap_size() const {
  return heap_bytes(bytes_) + heap_bytes(offsets_) + heap_bytes(special_) +
         heap_bytes(by_content_) + heap_bytes(by_bytes_);
}

}  // namespace quire::text
