// KernelReport: a KernelBenchResult as tables for people, and as JSON.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

#include "quire/bench/kernels/kernel_bench.h"

namespace quire::bench {

/// A table a shape, then attention's; `markdown` as docs have them.
std::string format_kernels(const KernelBenchResult& result, bool markdown);
boost::json::object kernels_json(const KernelBenchResult& result);

}  // namespace quire::bench
