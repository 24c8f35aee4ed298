#include "quire/models/registry.h"

#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quire/base/error.h"
#include "quire/base/log.h"
#include "quire/models/llama.h"

namespace quire::models {
namespace {

using checkpoint::ModelConfig;
using weights::WeightScope;

std::unique_ptr<Model> load_llama(const ModelConfig& config, const WeightScope& root) {
  return std::make_unique<LlamaModel>(root, config);
}

struct Architecture {
  std::string_view name;
  std::unique_ptr<Model> (*load)(const ModelConfig&, const WeightScope&);
};

constexpr std::array<Architecture, 3> kArchitectures = {{
    {"LlamaForCausalLM", load_llama},
    {"MistralForCausalLM", load_llama},
    {"Qwen2ForCausalLM", load_llama},  // biases on q, k and v only
}};

void warn_of_unread(const WeightScope& root) {
  const std::vector<std::string> names = root.unread();
  if (names.empty()) return;
  log_warning("{} tensors of the checkpoint are not used, e.g. {}", names.size(), names.front());
}

}  // namespace

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  names.reserve(kArchitectures.size());
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return names;
}

std::unique_ptr<Model> load_model(const ModelConfig& config, const WeightScope& root) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name != config.architecture) continue;
    auto model = architecture.load(config, root);
    warn_of_unread(root);
    return model;
  }
  throw LoadError("config", "architecture",
                  fmt::format("one of {}", fmt::join(known_architectures(), ", ")),
                  config.architecture);
}

}  // namespace quire::models
