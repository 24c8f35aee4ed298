// ConfigFile: options of a command read from a YAML file, as `serve --config` takes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace quire::apps {

/// Adds `--config FILE` to a command. The file's keys are the command's own options, with - or _
/// (`max_model_len: 8192`); a list is several values, true and false set a flag. `model` may stand
/// there too.
void add_config_option(CLI::App& command);

/// The words a file stands for, for the options of `command` that `given` (normalised words) does
/// not set: the command line goes before the file, the file before the defaults. Throws LoadError
/// naming `where` and the key that the command does not have, or whose value is no scalar or list.
std::vector<std::string> config_words(std::string_view yaml, const std::string& where,
                                      const CLI::App& command,
                                      const std::vector<std::string>& given);

/// `words` (normalised, the command first) with what its --config file says put behind them.
std::vector<std::string> with_config_file(std::vector<std::string> words, const CLI::App& app);

}  // namespace quire::apps
