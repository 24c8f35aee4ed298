// Smallest checkpoints of the Llama architecture that open without complaint, for tests of readers.
#pragma once

#include <string>

#include "quire/checkpoint/testing/gguf_writer.h"
#include "quire/checkpoint/testing/safetensors_writer.h"

namespace quire::checkpoint::testing {

/// One layer: hidden 32, intermediate 64, 4 heads of 8, 2 KV heads, 6 tokens, context 128. All
/// tensors are zero but the norms, which are one.

/// The metadata of the model in GGUF, without tokenizer and tensors.
GgufWriter small_llama_gguf_config();
/// The whole model: matrices in Q4_0, tokens a to d with <s> and </s>, tied head.
GgufWriter small_llama_gguf();
/// The metadata and, instead of the model's, one matrix of two rows of 256 in each weight format,
/// named as the format.
GgufWriter block_formats_gguf();

/// The text of config.json: fp32, tied head.
std::string small_llama_config_json();
/// All tensors under their HF names in fp32, without lm_head.
SafetensorsWriter small_llama_safetensors();
/// Writes config.json and model.safetensors into an existing folder.
void write_small_llama(const std::string& folder);

}  // namespace quire::checkpoint::testing
