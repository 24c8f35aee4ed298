#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/commands.h"
#include "quire/apps/model_options.h"
#include "quire/apps/sampling_options.h"
#include "quire/base/error.h"

namespace quire::apps {
namespace {

struct RunOptions {
  ModelOptions model;
  llm::SamplingParams sampling;
  std::vector<std::string> prompts;
  std::string file;
  bool chat = false;
  bool json = false;
};

// From arguments, else a file, else standard input: one prompt a line.
std::vector<std::string> read_prompts(const RunOptions& options) {
  if (!options.prompts.empty()) return options.prompts;
  std::ifstream file;
  if (!options.file.empty() && options.file != "-") {
    file.open(options.file);
    if (!file) throw LoadError(options.file, "cannot be read");
  } else if (options.file.empty() && isatty(STDIN_FILENO) != 0) {
    throw LoadError("run", "no prompt: give one as an argument, with --file, or on standard input");
  }
  std::istream& in = file.is_open() ? file : std::cin;
  std::vector<std::string> prompts;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) prompts.push_back(line);
  }
  if (prompts.empty()) throw LoadError("run", "no prompt in the input");
  return prompts;
}

std::vector<int32_t> to_chat(const llm::LLM& llm, const std::string& prompt) {
  text::Value::Dict message{{"role", text::Value("user")}, {"content", text::Value(prompt)}};
  auto chat = llm.chat_prompt(
      {{"messages", text::Value(text::Value::List{text::Value(std::move(message))})},
       {"add_generation_prompt", text::Value(true)}});
  if (!chat.ok()) throw LoadError("chat template", chat.error().message);
  return std::move(chat->ids);
}

void print_json(const std::string& prompt, const llm::RequestOutput& result) {
  namespace json = boost::json;
  for (const llm::CompletionOutput& output : result.outputs) {
    json::object line{{"prompt", prompt},
                      {"index", output.index},
                      {"text", output.text},
                      {"token_ids", json::array(output.token_ids.begin(), output.token_ids.end())},
                      {"finish_reason", engine::finish_reason_name(output.finish_reason)}};
    fmt::print("{}\n", json::serialize(line));
  }
}

void print_text(const std::string& prompt, const llm::RequestOutput& result, bool several) {
  for (const llm::CompletionOutput& output : result.outputs) {
    if (several) fmt::print("> {}\n", prompt);
    fmt::print("{}\n{}", output.text, several ? "\n" : "");
  }
}

int run(RunOptions& options) {
  const std::vector<std::string> prompts = read_prompts(options);
  if (const auto error = llm::validate(options.sampling)) throw LoadError("run", error->message);
  const auto llm =
      open_model(options.model, resolve_model(options.model.model, options.model.quiet));
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::vector<int32_t>> inputs;
  inputs.reserve(prompts.size());
  for (const std::string& prompt : prompts) {
    inputs.push_back(options.chat ? to_chat(*llm, prompt) : llm->tokenizer().encode(prompt, true));
  }
  const auto results = llm->generate(inputs, options.sampling);
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int failed = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].error) {
      fmt::print(stderr, "quire: prompt {}: {}\n", i + 1, results[i].error->message);
      ++failed;
      continue;
    }
    if (options.json) {
      print_json(prompts[i], results[i]);
    } else {
      print_text(prompts[i], results[i], results.size() > 1 || options.sampling.n > 1);
    }
    prompt_tokens += static_cast<int64_t>(results[i].prompt_token_ids.size());
    for (const auto& output : results[i].outputs)
      output_tokens += static_cast<int64_t>(output.token_ids.size());
  }
  fmt::print(
      stderr,
      "{} prompts, {} prompt tokens and {} output tokens in {:.2f} s: {:.1f} output tokens/s\n",
      results.size(), prompt_tokens, output_tokens, elapsed,
      static_cast<double>(output_tokens) / elapsed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

Action add_run(CLI::App& command) {
  auto options = std::make_shared<RunOptions>();
  command.add_option("prompts", options->prompts,
                     "the prompts; without any, --file or standard input, one a line");
  command.add_option("--file,-f", options->file,
                     "a file with one prompt a line; - is standard input");
  command.add_flag("--chat", options->chat, "put each prompt through the model's chat template");
  command.add_flag("--json", options->json,
                   "print JSON lines with text, token ids and finish reason");
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->model);
  return [options] { return run(*options); };
}

}  // namespace quire::apps
