// `quire tokenize` and `quire render`: looking inside the text layer.

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>

#include "quire/apps/commands.h"
#include "quire/apps/model_options.h"
#include "quire/apps/render_command.h"
#include "quire/apps/tokenize_command.h"
#include "quire/base/error.h"
#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/tokenizer_json.h"
#include "quire/text/chat_template.h"
#include "quire/text/tokenizer.h"

namespace quire::apps {
namespace {

text::Value::Dict special_tokens(const text::TokenizerSpec& spec) {
  text::Value::Dict tokens;
  const auto add = [&](const char* name, const std::string& token) {
    if (!token.empty()) tokens.emplace_back(name, text::Value(token));
  };
  add("bos_token", spec.bos_token);
  add("eos_token", spec.eos_token);
  add("unk_token", spec.unk_token);
  add("pad_token", spec.pad_token);
  return tokens;
}

int tokenize(const std::string& folder, const std::string& model) {
  text::TokenizerSpec spec =
      folder.empty() ? checkpoint::open_checkpoint(resolve_model(model, false)).tokenizer
                     : checkpoint::read_hf_tokenizer(folder).spec;
  const text::Tokenizer tokenizer(std::move(spec));
  return run_tokenize(std::cin, std::cout, tokenizer);
}

int render(const ModelOptions& options, bool jsonl) {
  std::string source;
  std::string where = options.chat_template_file;
  text::Value::Dict defaults;
  if (where.empty()) {
    const checkpoint::Checkpoint opened =
        checkpoint::open_checkpoint(resolve_model(options.model, false));
    if (opened.chat_template.empty())
      throw LoadError(opened.source_path, "the model has no chat template");
    source = opened.chat_template;
    where = opened.source_path;
    defaults = special_tokens(opened.tokenizer);
  } else {
    std::ifstream file(where, std::ios::binary);
    if (!file) throw LoadError(where, "cannot be read");
    source = (std::ostringstream() << file.rdbuf()).str();
  }
  const text::ChatTemplate chat_template(source, where);
  return jsonl ? run_render_jsonl(std::cin, std::cout, chat_template, defaults)
               : run_render(std::cin, std::cout, std::cerr, chat_template, defaults);
}

}  // namespace

Action add_tokenize(CLI::App& command) {
  struct Options {
    std::string folder;
    std::string model;
  };
  auto options = std::make_shared<Options>();
  command.add_option("--tokenizer", options->folder, "a folder with tokenizer.json");
  command.add_option("--model,-m", options->model,
                     "take the model's tokenizer; the default model's when neither is given");
  command.footer(
      "Reads JSON lines {\"text\": \"...\", \"add_special_tokens\": true} and prints an array of "
      "ids for each;\n"
      "{\"ids\": [...]} is decoded to a JSON string.");
  return [options] { return tokenize(options->folder, options->model); };
}

Action add_render(CLI::App& command) {
  struct Options {
    ModelOptions model;
    bool jsonl = false;
  };
  auto options = std::make_shared<Options>();
  add_model_name(command, options->model);
  command.add_flag("--jsonl", options->jsonl,
                   "one request a line in, one {\"text\": ...} or {\"error\": ...} a line out");
  command.footer(
      "Reads a chat request ({\"messages\": [...], \"tools\": [...], \"add_generation_prompt\": "
      "true,\n"
      "\"chat_template_kwargs\": {...}}) and prints the exact prompt that the model would see.");
  return [options] { return render(options->model, options->jsonl); };
}

}  // namespace quire::apps
