// TunedConfig: the settings a server ought to run this model with, each with its reason in the
// model's own figures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/plan/forecast.h"
#include "quire/plan/plan.h"

namespace quire::plan {

struct Setting {
  std::string key;    // as vLLM writes it: "max_model_len"
  std::string value;  // as YAML writes it: "8192", "true", "bfloat16"
  std::string why;    // one sentence
};

struct TunedConfig {
  std::vector<Setting> settings;

  const Setting* find(std::string_view key) const;
  /// `quire serve MODEL --dtype auto ...`, each option as the command line has it.
  std::string command_line(const std::string& model) const;
  /// With each reason as a comment above its key.
  std::string yaml() const;
};

/// `model` is what `serve` is to be called with. Requires plan.fits. `expected_tokens` is what a
/// sequence mostly comes to, prompt and output; 0 = the whole context.
TunedConfig tune(const Plan& plan, const std::string& model,
                 const std::optional<Forecast>& forecast, int64_t expected_tokens);

}  // namespace quire::plan
