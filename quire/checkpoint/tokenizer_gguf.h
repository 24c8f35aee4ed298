// tokenizer_spec_from_gguf: turns the tokenizer keys of a GGUF file into a TokenizerSpec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/text/tokenizer_spec.h"

namespace quire::checkpoint {

/// The values of the `tokenizer.ggml.*` keys as the file has them, unchecked.
struct GgufTokenizerFields {
  std::string model;                 // tokenizer.ggml.model
  std::string pre;                   // tokenizer.ggml.pre; empty when the file has none
  std::vector<std::string> tokens;   // tokenizer.ggml.tokens, by id
  std::vector<int32_t> token_types;  // tokenizer.ggml.token_type; empty, or one per token
  std::vector<std::string> merges;   // tokenizer.ggml.merges, "left right", by rank
  std::optional<int64_t> bos_id;
  std::optional<int64_t> eos_id;
  std::optional<int64_t> eot_id;
  std::optional<int64_t> unk_id;
  std::optional<int64_t> pad_id;
  std::optional<bool> add_bos;  // tokenizer.ggml.add_bos_token
  std::optional<bool> add_eos;  // tokenizer.ggml.add_eos_token
};

/// Throws LoadError naming `path` and the key when the model or pre-tokenizer is unknown, an id
/// lies outside the vocabulary or a list has the wrong length.
text::TokenizerSpec tokenizer_spec_from_gguf(const GgufTokenizerFields& fields,
                                             std::string_view path);

}  // namespace quire::checkpoint
