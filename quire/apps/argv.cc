#include "quire/apps/argv.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace quire::apps {
namespace {

// vLLM's short options of more than one letter, which the parser would read as bundled single
// letters.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShort = {{
    {"-tp", "--tensor-parallel-size"},
    {"-pp", "--pipeline-parallel-size"},
    {"-dp", "--data-parallel-size"},
    {"-cc", "--compilation-config"},
}};

std::string normalise(const std::string& argument) {
  const size_t equals = argument.find('=');
  const std::string_view name = std::string_view(argument).substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : argument.substr(equals);
  for (const auto& [brief, full] : kShort) {
    if (name == brief) return std::string(full) + value;
  }
  if (!name.starts_with("--")) return argument;
  std::string spelled(name);
  std::replace(spelled.begin() + 2, spelled.end(), '_', '-');
  return spelled + value;
}

}  // namespace

std::vector<std::string> normalise_argv(const std::vector<std::string>& arguments) {
  std::vector<std::string> normal;
  normal.reserve(arguments.size());
  bool options_over = false;
  for (const std::string& argument : arguments) {
    options_over = options_over || argument == "--";
    normal.push_back(options_over ? argument : normalise(argument));
  }
  return normal;
}

}  // namespace quire::apps
