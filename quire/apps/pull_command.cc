#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "quire/apps/commands.h"
#include "quire/apps/model_options.h"
#include "quire/hub/model_store.h"

namespace quire::apps {

Action add_pull(CLI::App& command) {
  struct Options {
    std::vector<std::string> names;
    bool quiet = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("models", options->names,
                     "names from the catalogue; the default model when none is given");
  command.add_flag("--quiet", options->quiet, "no progress bar");
  std::string known = "Known models:\n";
  const hub::Catalogue catalogue = hub::Catalogue::built_in();
  for (const hub::CatalogueEntry& entry : catalogue.entries()) {
    known += fmt::format("  {:<16} {} ({}){}\n", entry.name, entry.title, entry.license,
                         entry.is_default ? ", the default" : "");
  }
  command.footer(known);
  return [options] {
    if (options->names.empty()) options->names.emplace_back();
    for (const std::string& name : options->names)
      fmt::print("{}\n", resolve_model(name, options->quiet));
    return 0;
  };
}

}  // namespace quire::apps
