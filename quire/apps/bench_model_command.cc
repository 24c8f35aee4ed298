// `quire bench model`: tokens a second of models, beside the ceilings of the same run.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/apps/model_options.h"
#include "quire/base/error.h"
#include "quire/base/progress.h"
#include "quire/bench/model/model_bench.h"
#include "quire/bench/model/model_report.h"

namespace quire::apps {
namespace {

struct ModelCommand {
  ModelOptions model;
  std::vector<std::string> models;
  bench::ModelBenchOptions bench;
  bool no_prefill = false;
  bool no_decode = false;
  bool markdown = false;
  std::string json;
};

bench::ModelBenchResult bench_one(ModelCommand& command, const std::string& name) {
  bench::ModelBenchOptions bench = command.bench;
  bench.llm = engine_options(command.model);
  bench.llm.model = resolve_model(name, command.model.quiet);
  ProgressBar bar(ProgressBar::counting("tests"));
  if (!command.model.quiet) {
    bench.on_progress = [&](int done, int total) { bar.update(shown_name(name), done, total); };
  }
  return bench::bench_model(bench);
}

int bench_model(ModelCommand& command) {
  if (command.models.empty()) command.models.push_back(command.model.model);
  if (command.no_prefill) command.bench.prefills.clear();
  if (command.no_decode) command.bench.batches.clear();
  if (command.no_prefill && command.no_decode) {
    throw LoadError("bench model", "nothing is left to measure");
  }
  boost::json::array results;
  for (const std::string& name : command.models) {
    const bench::ModelBenchResult result = bench_one(command, name);
    if (command.json != "-") {
      fmt::print("{}{}", results.empty() ? "" : "\n", format_model(result, command.markdown));
    }
    results.push_back(bench::model_json(result));
  }
  if (!command.json.empty()) {
    write_file(command.json,
               boost::json::serialize(boost::json::object{{"models", results}}) + "\n");
  }
  return 0;
}

}  // namespace

Action add_bench_model(CLI::App& command) {
  auto options = std::make_shared<ModelCommand>();
  bench::ModelBenchOptions& bench = options->bench;
  command.add_option("models", options->models,
                     "names, files or folders; the default model when not given");
  command.add_option("--prefill", bench.prefills, "lengths of prompts")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--batch", bench.batches, "streams that decode together")
      ->delimiter(',')
      ->capture_default_str();
  command
      .add_option("--context", bench.context, "tokens of each stream's prompt before it decodes")
      ->capture_default_str();
  command
      .add_option("--decode", bench.decode_tokens,
                  "tokens of each stream that are timed, all streams decoding")
      ->capture_default_str();
  command.add_flag("--no-prefill", options->no_prefill, "decode only");
  command.add_flag("--no-decode", options->no_decode, "prefill only");
  command
      .add_option("--rounds", bench.rounds, "times each test is run, in turns; medians are shown")
      ->capture_default_str();
  command.add_flag("--ops", bench.with_ops, "also show where a step of each test spends its time");
  command.add_flag("--markdown", options->markdown, "tables as documents have them");
  command.add_option("--json", options->json, "write all figures as JSON; - is stdout");
  add_model_options(command, options->model);
  command.footer(
      "GB/s counts what must be read (weights and KV pages, once a step), GOP/s the operations of\n"
      "matmuls and attention; both are shown as shares of ceilings measured in the same rounds.");
  return [options] { return bench_model(*options); };
}

}  // namespace quire::apps
