#include "quire/apps/config_file.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "quire/apps/argv.h"
#include "quire/apps/read_text.h"
#include "quire/base/error.h"

namespace quire::apps {
namespace {

constexpr const char* kOption = "--config";

std::string name_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

/// True when one of the option's names is among the words.
bool is_given(const CLI::Option& option, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&option](const std::string& word) {
    return word.size() > 1 && word.front() == '-' && option.check_name(name_of(word));
  });
}

/// A model as the command's first word, without its option.
bool has_positional(const std::vector<std::string>& words) {
  return words.size() > 1 && !words[1].empty() && words[1].front() != '-';
}

std::string scalar(const YAML::Node& value, const std::string& where, const std::string& key) {
  if (value.IsScalar()) return value.Scalar();
  throw LoadError(where, key, "a value or a list of values", value.IsNull() ? "nothing" : "a map");
}

void add_flag(const CLI::Option& option, const std::string& name, const std::string& text,
              const std::string& where, const std::string& key, std::vector<std::string>& words) {
  if (text == "true" || text == "True") {
    words.push_back(name);
    return;
  }
  if (text != "false" && text != "False") throw LoadError(where, key, "true or false", text);
  // Flags that are on by themselves have a name that turns them off.
  const std::string off = "--no-" + name.substr(2);
  if (option.check_name(off)) words.push_back(off);
}

}  // namespace

void add_config_option(CLI::App& command) {
  // Read before the others are parsed: see with_config_file.
  command.add_option_function<std::string>(
      kOption, [](const std::string&) {},
      "a YAML file of these options (max_model_len: 8192), as `quire plan --write-config` writes; "
      "the command line goes before it");
}

std::vector<std::string> config_words(std::string_view yaml, const std::string& where,
                                      const CLI::App& command,
                                      const std::vector<std::string>& given) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(yaml));
  } catch (const YAML::Exception& error) {
    throw LoadError(where, fmt::format("line {}: {}", error.mark.line + 1, error.msg));
  }
  std::vector<std::string> words;
  if (root.IsNull()) return words;
  if (!root.IsMap()) throw LoadError(where, "", "keys and values", "something else");
  for (const auto& entry : root) {
    const auto key = entry.first.as<std::string>();
    const std::string name = normalise_argv({"--" + key}).front();
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr || name == kOption) {
      throw LoadError(where, key, fmt::format("an option of `quire {}`", command.get_name()),
                      "none of this name");
    }
    if (is_given(*option, given) || (name == "--model" && has_positional(given))) continue;
    const YAML::Node& value = entry.second;
    if (option->get_items_expected_max() == 0) {
      add_flag(*option, name, scalar(value, where, key), where, key, words);
      continue;
    }
    // Joined by =, so that a value that begins with - is not taken for an option.
    if (!value.IsSequence()) {
      words.push_back(name + "=" + scalar(value, where, key));
      continue;
    }
    if (value.size() == 0) continue;
    words.push_back(name);
    for (const auto& each : value) words.push_back(scalar(each, where, key));
  }
  return words;
}

std::vector<std::string> with_config_file(std::vector<std::string> words, const CLI::App& app) {
  if (words.empty()) return words;
  const auto commands = app.get_subcommands([&words](const CLI::App* each) {
    return each->get_name() == words.front() && each->get_option_no_throw(kOption) != nullptr;
  });
  if (commands.empty()) return words;
  const auto found = std::find_if(words.begin(), words.end(),
                                  [](const std::string& word) { return name_of(word) == kOption; });
  if (found == words.end()) return words;
  const bool joined = found->size() > std::string_view(kOption).size();
  if (!joined && found + 1 == words.end()) return words;  // the parser says what is missing
  const std::string path =
      joined ? found->substr(std::string_view(kOption).size() + 1) : *(found + 1);
  const auto more = config_words(read_text(path), path, *commands.front(), words);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace quire::apps
