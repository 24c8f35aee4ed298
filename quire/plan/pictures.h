// Pictures: a report's figures as SVG, 1200 pixels wide, each mark with its exact number as an
// attribute.
#pragma once

#include <string>

#include "quire/plan/report.h"

namespace quire::plan {

/// A bar for each rank: weights by kind, activations, estimates and the KV cache, against the
/// memory.
std::string ledger_svg(const Report& report);
/// Memory over the context's length, for several numbers of sequences.
std::string memory_svg(const Report& report);
/// The device's roof with the program's operations on it, in decode and in prefill. Requires a
/// forecast.
std::string roofline_svg(const Report& report);
/// Tokens a second and the time between tokens over the batch, as ranges. Requires a forecast.
std::string throughput_svg(const Report& report);

/// A page that needs nothing beside itself: the pictures, the tables, the figures as JSON.
std::string report_html(const Report& report);

}  // namespace quire::plan
