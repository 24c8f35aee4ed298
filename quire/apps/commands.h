// Commands: what `quire WORD` runs; each adds its options to the parser and returns what to do once
// they are read.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace quire::apps {

/// Runs a command whose options were parsed; returns the exit code. Throws LoadError.
using Action = std::function<int()>;

Action add_serve(CLI::App& app);
Action add_chat(CLI::App& app);
Action add_run(CLI::App& app);
Action add_info(CLI::App& app);
Action add_bench(CLI::App& app);
Action add_profile(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_pull(CLI::App& app);
Action add_perplexity(CLI::App& app);
Action add_tokenize(CLI::App& app);
Action add_render(CLI::App& app);

}  // namespace quire::apps
