// KnownModels: the shapes of public models, so that a plan can be made by name, before any
// download.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/plan/planned_model.h"

namespace quire::plan {

/// The file the binary carries: {"models": [{"name": .., "config": {a config.json's facts}}]}.
std::string_view models_json();

std::vector<std::string> known_model_names();
/// By name, whatever the case; nothing when there is no such model.
std::optional<PlannedModel> find_known_model(std::string_view name);

}  // namespace quire::plan
