// CeilingsReport: a LimitsTable as tables for people, and as JSON.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

#include "quire/backend/cpu/ceilings/limits.h"

namespace quire::bench {

/// Medians with the best repetition beside them.
std::string format_limits(const backend::cpu::LimitsTable& table);

/// All figures; "summary" holds the Ceilings of `level`.
boost::json::object limits_json(const backend::cpu::LimitsTable& table, backend::cpu::Level level);

/// The Ceilings as every bench that measures by them prints them: one line and one object.
std::string format_ceilings(const backend::cpu::Ceilings& ceilings);
boost::json::object ceilings_json(const backend::cpu::Ceilings& ceilings);

}  // namespace quire::bench
