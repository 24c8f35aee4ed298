// Report: everything a plan found, and its forms: a table for terminals, JSON, pictures, a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/json/fwd.hpp>

#include "quire/plan/alternatives.h"
#include "quire/plan/forecast.h"
#include "quire/plan/traffic.h"
#include "quire/plan/tuned_config.h"

namespace quire::plan {

struct Report {
  const Plan* plan = nullptr;        // not null
  std::string model;                 // as the user named it
  std::optional<Forecast> forecast;  // where the device's ceilings are known
  std::optional<TrafficResult> traffic;
  int32_t users = 0;
  int64_t prompt_len = 0;  // the ones reckoned with
  int64_t output_len = 0;
  std::vector<Alternative> alternatives;
  std::optional<TunedConfig> config;  // when it fits

  /// The model's name without the folders it lies in.
  std::string title() const { return model.substr(model.rfind('/') + 1); }
};

/// For a terminal.
std::string report_text(const Report& report);
/// All figures, in bytes and seconds.
boost::json::object report_json(const Report& report);

}  // namespace quire::plan
