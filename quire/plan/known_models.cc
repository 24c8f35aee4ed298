#include "quire/plan/known_models.h"

#include <algorithm>
#include <cctype>

#include <boost/json.hpp>

namespace quire::plan {
namespace {

namespace json = boost::json;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

std::vector<std::string> known_model_names() {
  std::vector<std::string> names;
  const json::value root = json::parse(models_json());
  for (const json::value& model : root.at("models").as_array()) {
    names.emplace_back(model.at("name").as_string());
  }
  return names;
}

std::optional<PlannedModel> find_known_model(std::string_view name) {
  const std::string wanted = lower(name);
  const json::value root = json::parse(models_json());
  for (const json::value& model : root.at("models").as_array()) {
    const std::string known(model.at("name").as_string());
    if (lower(known) != wanted) continue;
    PlannedModel found = planned_model_from_config(json::serialize(model.at("config")), known);
    return found;
  }
  return std::nullopt;
}

}  // namespace quire::plan
