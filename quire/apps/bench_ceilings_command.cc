// `quire bench ceilings`: what kernels, plans and models are measured by.

#include <memory>
#include <string>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/backend/cpu/ceilings/limits.h"
#include "quire/base/error.h"
#include "quire/base/progress.h"
#include "quire/bench/machine/ceilings_report.h"

namespace quire::apps {
namespace {

struct CeilingsCommand {
  backend::cpu::LimitsOptions limits;
  int64_t read_mib = 0;
  std::string json;
  bool quiet = false;
};

int bench_ceilings(CeilingsCommand& command) {
  if (command.limits.repetitions < 1 || command.limits.threads < 0 || command.read_mib < 0) {
    throw LoadError("bench ceilings", "numbers must be positive");
  }
  command.limits.read_bytes = command.read_mib << 20;
  backend::cpu::LimitsTable table;
  {
    ProgressBar bar(ProgressBar::counting("figures"));
    if (!command.quiet) {
      command.limits.on_progress = [&](int done, int total) {
        bar.update("measuring ceilings", done, total);
      };
    }
    table = backend::cpu::measure_limits(command.limits);
  }
  const auto level = backend::cpu::chosen_level();
  const bool whole = command.read_mib == 0;  // else what was read may lie in caches
  if (whole) backend::cpu::save_ceilings(summarize(table, level));
  if (command.json != "-") fmt::print("{}", bench::format_limits(table));
  if (!command.json.empty()) {
    write_file(command.json, boost::json::serialize(bench::limits_json(table, level)) + "\n");
  }
  return 0;
}

}  // namespace

Action add_bench_ceilings(CLI::App& command) {
  auto options = std::make_shared<CeilingsCommand>();
  command
      .add_option("--threads", options->limits.threads,
                  "threads beside one; 0: one a physical core this process may use")
      ->capture_default_str();
  command
      .add_option("--repetitions", options->limits.repetitions,
                  "rounds in which each figure is measured once; medians are shown")
      ->capture_default_str();
  command.add_option("--read-mib", options->read_mib,
                     "MiB that a thread reads; enough to leave the caches when not given");
  command.add_option("--json", options->json, "write all figures as JSON; - is stdout");
  command.add_flag("--quiet", options->quiet, "no progress bar");
  command.footer(
      "Needs a machine that does nothing else. The summary is kept in the user's cache folder, "
      "for\n"
      "what counts with this machine's ceilings.");
  return [options] { return bench_ceilings(*options); };
}

}  // namespace quire::apps
