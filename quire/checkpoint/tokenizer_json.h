// read_hf_tokenizer: turns an HF folder's tokenizer.json and its companions into a TokenizerSpec.
#pragma once

#include <string>
#include <string_view>

#include "quire/text/tokenizer_spec.h"

namespace quire::checkpoint {

struct HfTokenizerFiles {
  text::TokenizerSpec spec;
  std::string chat_template;  // empty when the folder has none
};

/// Reads tokenizer.json and, where present, tokenizer_config.json and chat_template.jinja (which
/// goes before the configuration's template). Throws LoadError naming file and field for a file
/// that is missing or malformed and for a component that is not supported.
HfTokenizerFiles read_hf_tokenizer(const std::string& folder);

/// The parts of read_hf_tokenizer on texts in memory; `where` is the file named in errors.
text::TokenizerSpec parse_tokenizer_json(std::string_view json, std::string_view where);
/// Adds special tokens, BOS/EOS rules and the chat template of tokenizer_config.json to `files`.
void apply_tokenizer_config(std::string_view json, std::string_view where, HfTokenizerFiles& files);

}  // namespace quire::checkpoint
