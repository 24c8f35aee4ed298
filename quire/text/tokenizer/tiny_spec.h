// Small tokenizer specifications for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "quire/text/tokenizer/byte_alphabet.h"
#include "quire/text/tokenizer_spec.h"

namespace quire::text {

/// The 256 bytes (id = byte) and one token for each merge, which are written in plain bytes; cut
/// by ByteLevel with GPT-2's pattern.
inline TokenizerSpec tiny_spec(
    const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    spec.vocab.emplace_back(byte_character(static_cast<uint8_t>(byte)));
  }
  for (const auto& [left, right] : merges) {
    spec.merges.emplace_back(to_byte_characters(left), to_byte_characters(right));
    spec.vocab.push_back(spec.merges.back().first + spec.merges.back().second);
  }
  spec.pre_tokenizers.emplace_back();
  return spec;
}

/// Adds a token at the next id and returns it, for its flags to be set.
inline AddedToken& add_token(TokenizerSpec& spec, const std::string& content, bool special) {
  AddedToken& token = spec.added_tokens.emplace_back();
  token.id = static_cast<int32_t>(spec.vocab.size());
  token.content = content;
  token.special = special;
  spec.vocab.push_back(content);
  return token;
}

}  // namespace quire::text
