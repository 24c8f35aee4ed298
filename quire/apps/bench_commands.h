// BenchCommands: the subcommands of `quire bench`.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

#include "quire/apps/commands.h"

namespace quire::apps {

Action add_bench_ceilings(CLI::App& app);
Action add_bench_kernels(CLI::App& app);
Action add_bench_model(CLI::App& app);
Action add_bench_serve(CLI::App& app);
Action add_bench_batching(CLI::App& app);
Action add_bench_kv(CLI::App& app);
Action add_bench_trace(CLI::App& app);

/// Writes `content`; "-" is standard output. Throws LoadError.
void write_file(const std::string& path, const std::string& content);

}  // namespace quire::apps
