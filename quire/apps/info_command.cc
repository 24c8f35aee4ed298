#include <memory>

#include <fmt/format.h>

#include "quire/apps/commands.h"
#include "quire/apps/model_options.h"
#include "quire/backend/cpu/levels.h"
#include "quire/checkpoint/checkpoint.h"

namespace quire::apps {
namespace {

void print_config(const std::string& path, const checkpoint::ModelConfig& c) {
  fmt::print("model             {}\n", path);
  fmt::print("architecture      {} ({})\n", c.architecture, c.model_type);
  fmt::print("layers            {} of hidden size {}, intermediate {}\n", c.num_layers,
             c.hidden_size, c.intermediate_size);
  fmt::print("attention         {} heads, {} KV heads, head dim {}\n", c.num_heads, c.num_kv_heads,
             c.head_dim);
  fmt::print("vocabulary        {}{}\n", c.vocab_size,
             c.tie_word_embeddings ? ", head tied to the embedding" : "");
  fmt::print("context           {} tokens\n", c.max_position);
}

int info(const ModelOptions& options) {
  llm::Options llm = engine_options(options);
  llm.model = resolve_model(options.model, options.quiet);
  print_config(llm.model, checkpoint::open_checkpoint(llm.model).config);
  fmt::print("\n{}\n", llm::format_report(llm::count_memory(llm)));
  using backend::cpu::level_name;
  fmt::print("instruction set   {} (of:", level_name(backend::cpu::chosen_level()));
  for (const auto level : backend::cpu::available_levels()) fmt::print(" {}", level_name(level));
  fmt::print("; QUIRE_ISA caps it)\n");
  return 0;
}

}  // namespace

Action add_info(CLI::App& command) {
  auto options = std::make_shared<ModelOptions>();
  command.add_option("model_tag", options->model, "the model: see --model");
  add_model_options(command, *options);
  command.footer("Nothing is loaded: the memory table is counted from the program that would run.");
  return [options] { return info(*options); };
}

}  // namespace quire::apps
