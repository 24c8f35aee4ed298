// Memory and step profiles as JSON, in bytes and milliseconds.
#pragma once

#include <boost/json.hpp>

#include "quire/base/memory_ledger.h"
#include "quire/base/process_memory.h"
#include "quire/llm/memory_report.h"
#include "quire/llm/profile_memory.h"
#include "quire/llm/profile_steps.h"

namespace quire::llm {

/// {"tags": {"weights": {"current", "peak", "allocated", "freed"}, ...}, "total": {...}}
boost::json::object ledger_json(const MemorySnapshot& ledger);
/// {"rss", "pss", "peak_rss", "anonymous", "file", "huge_pages", "swap", "address_space"}
boost::json::object process_json(const ProcessMemory& process);
/// By the names of the ledger's tags, and "total".
boost::json::object report_json(const MemoryReport& report);
/// {"name", "before", "after", "increase", "peak_rss", "peak_is_exact", "ledger"}
boost::json::object memory_profile_json(const MemoryProfile& profile);
/// {"steps", "tokens", "step_ms", ..., "operations": [{"name", "kind", "calls", "ms", "share",
/// "bytes", "operations", "gb_s", "gop_s", "of_roofline"}, ...]}; the last only with ceilings.
boost::json::object step_profile_json(const StepProfiler& profiler, StepClass step_class);

}  // namespace quire::llm
