// Checkpoint: a model's files opened and checked: tensors, configuration, tokenizer and chat
// template.
#pragma once

#include <memory>
#include <string>

#include "quire/checkpoint/model_config.h"
#include "quire/checkpoint/tensor_source.h"
#include "quire/text/tokenizer_spec.h"

namespace quire::checkpoint {

struct Checkpoint {
  std::shared_ptr<const TensorSource> tensors;
  ModelConfig config;
  GenerationDefaults generation;
  text::TokenizerSpec tokenizer;  // no vocabulary when the files hold no tokenizer
  std::string chat_template;      // empty when there is none
  std::string source_path;
};

/// Opens a GGUF file or an HF folder. Throws LoadError naming file, field, expected and found.
Checkpoint open_checkpoint(const std::string& path);

}  // namespace quire::checkpoint
