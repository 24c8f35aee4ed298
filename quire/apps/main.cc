// quire: one binary; the first word says what it does.

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "quire/apps/argv.h"
#include "quire/apps/commands.h"
#include "quire/apps/config_file.h"
#include "quire/base/error.h"

namespace quire::apps {
namespace {

struct Command {
  const char* name;
  const char* help;
  Action (*add)(CLI::App&);
};

constexpr Command kCommands[] = {
    {"serve", "serve a model over the OpenAI API", add_serve},
    {"chat", "talk with a model in the terminal", add_chat},
    {"run", "complete prompts from arguments, a file or standard input, all in one batch", add_run},
    {"info", "show a model's shape, what memory it takes and the instruction set in use", add_info},
    {"plan", "count what a model takes, and how fast it can be, before loading it", add_plan},
    {"profile", "show where a model's memory and time go while it answers", add_profile},
    {"bench", "measure machine, kernels, models, servers; paging and batching", add_bench},
    {"perplexity", "how well a model predicts a text; what rounding activations costs",
     add_perplexity},
    {"pull", "fetch a model of the catalogue into the cache", add_pull},
    {"tokenize", "text to token ids, JSON lines in and out", add_tokenize},
    {"render", "a chat request to its exact prompt", add_render},
};

int run_main(int argc, char** argv) {
  CLI::App app("Quire serves large language models from one binary.", "quire");
  app.set_version_flag("--version", "quire " QUIRE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  quire serve                                  the default model on port 8000\n"
      "  quire serve model.gguf --max-model-len 8192\n"
      "  quire chat\n"
      "  quire run \"The capital of France is\" --max-tokens 8 --temperature 0\n"
      "`quire COMMAND --help` explains a command's options. Options may be written with - or _.");
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    sub->get_formatter()->column_width(36);
    actions.emplace_back(sub, command.add(*sub));
  }
  std::vector<std::string> words = normalise_argv(std::vector<std::string>(argv + 1, argv + argc));
  words = with_config_file(std::move(words), app);
  std::vector<std::string> reversed(words.rbegin(),
                                    words.rend());  // the parser takes them from the back
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return action();
  }
  return 2;
}

}  // namespace
}  // namespace quire::apps

int main(int argc, char** argv) {
  try {
    return quire::apps::run_main(argc, argv);
  } catch (const quire::LoadError& error) {
    std::fprintf(stderr, "quire: %s\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "quire: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire: %s\n", error.what());
  }
  return 1;
}
