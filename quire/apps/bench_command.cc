#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "quire/apps/bench_commands.h"
#include "quire/base/error.h"

namespace quire::apps {

void write_file(const std::string& path, const std::string& content) {
  if (path == "-") {
    fmt::print("{}", content);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) throw LoadError(path, "cannot be written");
}

Action add_bench(CLI::App& command) {
  struct Subcommand {
    const char* name;
    const char* help;
    Action (*add)(CLI::App&);
  };
  constexpr Subcommand kSubcommands[] = {
      {"ceilings", "what this processor can read and compute at most", add_bench_ceilings},
      {"kernels", "each kernel's time, beside the ceilings of the same run", add_bench_kernels},
      {"model", "tokens a second of models: prefill by length, decode by batch", add_bench_model},
      {"serve", "load any OpenAI-compatible server and measure rates and latencies",
       add_bench_serve},
      {"batching", "continuous against static batching on a model, in one run", add_bench_batching},
      {"kv", "KV memory that holds no token, by simulation, at several block sizes", add_bench_kv},
      {"trace", "draw what the scheduler does with a request mix, step by step", add_bench_trace},
  };
  command.require_subcommand(1);
  auto actions = std::make_shared<std::vector<std::pair<CLI::App*, Action>>>();
  for (const Subcommand& each : kSubcommands) {
    CLI::App* sub = command.add_subcommand(each.name, each.help);
    sub->get_formatter()->column_width(36);
    actions->emplace_back(sub, each.add(*sub));
  }
  return [actions] {
    for (const auto& [sub, action] : *actions) {
      if (sub->parsed()) return action();
    }
    return 2;
  };
}

}  // namespace quire::apps
