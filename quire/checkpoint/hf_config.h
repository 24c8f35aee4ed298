// Reads an HF folder's config.json and generation_config.json.
#pragma once

#include "quire/checkpoint/json_config.h"
#include "quire/checkpoint/model_config.h"

namespace quire::checkpoint {

/// Fills what the file leaves out with transformers' defaults for its model_type. Throws LoadError
/// naming the key that is missing, ill-typed, out of range or not supported.
ModelConfig hf_model_config(const JsonConfig& json);

/// The sampling defaults of generation_config.json; its end tokens, where it names any, replace
/// those of `config`.
GenerationDefaults hf_generation_defaults(const JsonConfig& json, ModelConfig& config);

}  // namespace quire::checkpoint
