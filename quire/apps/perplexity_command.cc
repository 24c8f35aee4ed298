// `quire perplexity`: how well a model predicts a text, and what rounding activations costs.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/apps/model_options.h"
#include "quire/apps/read_text.h"
#include "quire/base/error.h"
#include "quire/base/progress.h"
#include "quire/bench/perplexity/perplexity.h"
#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/tokenizer_json.h"
#include "quire/text/tokenizer.h"

namespace quire::apps {
namespace {

struct PerplexityCommand {
  ModelOptions model;
  std::string file;
  bench::PerplexityOptions bench;
  std::vector<std::string> compare;
  std::string json;
};

std::vector<int32_t> tokenize_file(const llm::Options& options, const std::string& file) {
  text::TokenizerSpec spec = options.tokenizer.empty()
                                 ? checkpoint::open_checkpoint(options.model).tokenizer
                                 : checkpoint::read_hf_tokenizer(options.tokenizer).spec;
  if (spec.vocab.empty()) throw LoadError(options.model, "the model has no tokenizer");
  return text::Tokenizer(std::move(spec))
      .encode(read_text(file), /*add_special_tokens=*/false,
              /*parse_special=*/false);
}

int perplexity(PerplexityCommand& command) {
  bench::PerplexityOptions& bench = command.bench;
  bench.llm = engine_options(command.model);
  bench.llm.model = resolve_model(command.model.model, command.model.quiet);
  bench.activation_dtypes =
      command.compare.empty() ? std::vector{bench.llm.activation_dtype} : command.compare;
  const std::vector<int32_t> tokens = tokenize_file(bench.llm, command.file);
  bench::PerplexityResult result;
  {
    ProgressBar bar(ProgressBar::counting("windows"));
    if (!command.model.quiet) {
      bench.on_progress = [&](int64_t done, int64_t total) { bar.update("scoring", done, total); };
    }
    result = bench::measure_perplexity(bench, tokens);
  }
  if (command.json != "-") fmt::print("{}", bench::format_perplexity(result));
  if (!command.json.empty()) {
    boost::json::object out = bench::perplexity_json(result);
    out["model"] = shown_name(command.model.model);
    write_file(command.json, boost::json::serialize(out) + "\n");
  }
  return 0;
}

}  // namespace

Action add_perplexity(CLI::App& command) {
  auto options = std::make_shared<PerplexityCommand>();
  command.add_option("model_tag", options->model.model, "the model: see --model")->required();
  command.add_option("file", options->file, "the text")->required();
  command.add_option("--window", options->bench.window, "tokens of a window")
      ->capture_default_str();
  command.add_option("--windows", options->bench.windows, "windows to score at most")
      ->capture_default_str();
  command
      .add_option("--compare", options->compare,
                  "activation types to score in one go, e.g. fp32,bf16,int8; the first is what the "
                  "others are compared with")
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "int8"}));
  command.add_option("--json", options->json, "write the figures as JSON; - is stdout");
  add_model_options(command, options->model);
  command.footer(
      "The text is cut into windows that do not overlap, from its beginning; every token of a "
      "window\n"
      "but the first is predicted from those before it in the window. Each type of --compare "
      "takes\n"
      "its own copy of the packed weights.");
  return [options] { return perplexity(*options); };
}

}  // namespace quire::apps
