// Reads the model's configuration and the tokenizer's raw fields out of a GGUF file's metadata.
#pragma once

#include <string>

#include "quire/checkpoint/gguf_file.h"
#include "quire/checkpoint/model_config.h"
#include "quire/checkpoint/tokenizer_gguf.h"

namespace quire::checkpoint {

/// "llama" becomes LlamaForCausalLM, "qwen2" Qwen2ForCausalLM; other architectures keep their name,
/// and what belongs to one family alone is not checked for them. Throws LoadError naming the key
/// that is missing, ill-typed or out of range.
ModelConfig gguf_model_config(const GgufFile& file);

/// True when the file carries a vocabulary.
bool has_gguf_tokenizer(const GgufMetadata& metadata);
GgufTokenizerFields gguf_tokenizer_fields(const GgufMetadata& metadata);

}  // namespace quire::checkpoint
