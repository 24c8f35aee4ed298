// The registry: which architecture names Quire can load, in one explicit table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quire/checkpoint/model_config.h"
#include "quire/models/model.h"
#include "quire/weights/weight_scope.h"

namespace quire::models {

/// Loads the model `config.architecture` names, taking its weights from `root`, the checkpoint's
/// root scope. Warns of tensors nothing used. An unknown architecture is a LoadError that lists
/// the known ones.
std::unique_ptr<Model> load_model(const checkpoint::ModelConfig& config,
                                  const weights::WeightScope& root);

/// The names load_model knows, in table order.
std::vector<std::string> known_architectures();

}  // namespace quire::models
