// `quire bench kernels`: each kernel beside the ceilings of the same run.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/base/error.h"
#include "quire/base/progress.h"
#include "quire/bench/kernels/kernel_bench.h"
#include "quire/bench/kernels/kernel_report.h"

namespace quire::apps {
namespace {

struct KernelsCommand {
  bench::KernelBenchOptions bench;
  std::vector<std::string> shapes;
  int64_t cold_mib = 128;
  bool no_attention = false;
  bool no_linear = false;
  bool markdown = false;
  bool quiet = false;
  std::string json;
};

int bench_kernels(KernelsCommand& command) {
  bench::KernelBenchOptions& bench = command.bench;
  if (!command.shapes.empty()) bench.shapes.clear();
  for (const std::string& shape : command.shapes) {
    bench.shapes.push_back(bench::parse_shape(shape, "--shapes"));
  }
  if (command.no_attention) bench.contexts.clear();
  if (command.no_linear) bench.shapes.clear();
  if (command.cold_mib < 1) throw LoadError("--cold-mib", "must be 1 or more");
  bench.cold_bytes = command.cold_mib << 20;
  bench::KernelBenchResult result;
  {
    ProgressBar bar(ProgressBar::counting("kernels"));
    if (!command.quiet) {
      bench.on_progress = [&](int done, int total) { bar.update("timing", done, total); };
    }
    result = bench::bench_kernels(bench);
  }
  if (command.json != "-") fmt::print("{}", bench::format_kernels(result, command.markdown));
  if (!command.json.empty()) {
    write_file(command.json, boost::json::serialize(bench::kernels_json(result)) + "\n");
  }
  return 0;
}

}  // namespace

Action add_bench_kernels(CLI::App& command) {
  auto options = std::make_shared<KernelsCommand>();
  bench::KernelBenchOptions& bench = options->bench;
  command.add_option("--threads", bench.threads, "compute threads; 0: one a physical core")
      ->capture_default_str();
  command.add_option("--rounds", bench.rounds, "times everything is measured; medians are shown")
      ->capture_default_str();
  std::string names;
  for (const bench::LinearLayout& layout : bench::linear_layouts()) {
    names += (names.empty() ? "" : ", ") + std::string(layout.name);
  }
  command.add_option("--layouts", bench.layouts, "of weights: " + names + "; all when not given")
      ->delimiter(',');
  command.add_option("--activations", bench.activations, "fp32, bf16, int8; all when not given")
      ->delimiter(',');
  command
      .add_option("--shapes", options->shapes,
                  "outputs x inputs of weights: 8192x2048,576x576; those of common models when not "
                  "given")
      ->delimiter(',');
  command.add_option("--m", bench.rows, "rows of activations")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--contexts", bench.contexts, "tokens that decode attention looks at")
      ->delimiter(',')
      ->capture_default_str();
  command.add_flag("--no-attention", options->no_attention, "matrices only");
  command.add_flag("--no-linear", options->no_linear, "attention only");
  command
      .add_option("--cold-mib", options->cold_mib,
                  "MiB of weights that a kernel goes through before it meets one again")
      ->capture_default_str();
  command.add_flag("--markdown", options->markdown, "tables as documents have them");
  command.add_option("--json", options->json, "write all figures as JSON; - is stdout");
  command.add_flag("--quiet", options->quiet, "no progress bar");
  command.footer(
      "Quantizing and packing activations is part of the time. The ceiling is the larger of "
      "weight\n"
      "bytes over the read bandwidth and operations over the peak for the activations' type, both\n"
      "measured in the same round; the column tells which binds.");
  return [options] { return bench_kernels(*options); };
}

}  // namespace quire::apps
