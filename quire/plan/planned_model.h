// PlannedModel: what a plan knows of a model: its configuration and, where there are files, the
// table of their tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/checkpoint/model_config.h"
#include "quire/checkpoint/tensor_source.h"

namespace quire::plan {

struct PlannedModel {
  std::string name;  // the file or folder
  checkpoint::ModelConfig config;
  /// Null when there is a config.json alone: shapes follow from it.
  std::shared_ptr<const checkpoint::TensorSource> tensors;
  /// Tokens a layer looks back; 0 = all. The engine refuses models with one; a plan counts it.
  int64_t window = 0;
  /// What config.json says of quantization, as a WeightFormat's name; empty when nothing.
  std::string quantized_as;
  /// What the plan supposes and the reader ought to know, a sentence each.
  std::vector<std::string> notes;
};

/// Opens a GGUF file, an HF folder (with weights or with config.json alone) or a config.json. Reads
/// headers and tables, no weights. Throws LoadError.
PlannedModel open_planned_model(const std::string& path);

/// From the text of a config.json; `name` stands for it in messages. Throws LoadError.
PlannedModel planned_model_from_config(std::string_view text, const std::string& name);

}  // namespace quire::plan
