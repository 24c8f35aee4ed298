#include <unistd.h>
#include <csignal>

#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "quire/apps/commands.h"
#include "quire/apps/model_options.h"
#include "quire/apps/sampling_options.h"
#include "quire/engine/text_stream.h"

namespace quire::apps {
namespace {

struct ChatOptions {
  ModelOptions model;
  llm::SamplingParams sampling;
  std::string system;
};

std::atomic<bool> interrupted{false};  // set by Ctrl-C while an answer is being made

void on_interrupt(int) {
  interrupted = true;
}

text::Value message(const char* role, const std::string& content) {
  return text::Value(
      text::Value::Dict{{"role", text::Value(role)}, {"content", text::Value(content)}});
}

// Prints the answer as it comes; Ctrl-C ends it and keeps what was said so far.
Result<std::string> answer(llm::LLM& llm, const text::Value::List& messages,
                           const llm::SamplingParams& sampling) {
  auto prompt = llm.chat_prompt(
      {{"messages", text::Value(messages)}, {"add_generation_prompt", text::Value(true)}});
  if (!prompt.ok()) return prompt.error();
  auto request = llm.make_request(std::move(prompt->ids), sampling);
  if (!request.ok()) return request.error();
  auto stream = llm.engine().submit(std::move(request).value());
  if (!stream.ok()) return stream.error();
  engine::ChoiceText text(llm.tokenizer(), sampling.skip_special_tokens);
  std::string said;
  std::vector<engine::OutputEvent> events;
  while (stream->wait(events)) {
    for (const engine::OutputEvent& event : events) {
      if (event.error) return *event.error;
      const std::string piece = text.push(event);
      said += piece;
      fmt::print("{}", piece);
    }
    std::fflush(stdout);
    if (interrupted) stream->cancel();
  }
  fmt::print("\n");
  return said;
}

bool read_line(bool terminal, std::string& line) {
  if (terminal) {
    fmt::print("\033[1m> \033[0m");
    std::fflush(stdout);
  }
  return static_cast<bool>(std::getline(std::cin, line));
}

int chat(ChatOptions& options) {
  const auto llm =
      open_model(options.model, resolve_model(options.model.model, options.model.quiet));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal)
    fmt::print("Chat with {}. /clear forgets, /exit or Ctrl-D leaves, Ctrl-C stops an answer.\n",
               shown_name(options.model.model));
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  struct sigaction at_prompt {};
  sigaction(SIGINT, nullptr, &at_prompt);

  text::Value::List messages;
  const auto forget = [&] {
    messages.clear();
    if (!options.system.empty()) messages.push_back(message("system", options.system));
  };
  forget();
  for (std::string line; read_line(terminal, line);) {
    if (line.empty()) continue;
    if (line == "/exit" || line == "/quit") break;
    if (line == "/clear") {
      forget();
      continue;
    }
    messages.push_back(message("user", line));
    interrupted = false;
    sigaction(SIGINT, &action, nullptr);
    const auto said = answer(*llm, messages, options.sampling);
    sigaction(SIGINT, &at_prompt, nullptr);
    if (!said.ok()) {
      fmt::print(stderr, "quire: {}\n", said.error().message);
      messages.pop_back();
      continue;
    }
    messages.push_back(message("assistant", said.value()));
  }
  return 0;
}

}  // namespace

Action add_chat(CLI::App& command) {
  auto options = std::make_shared<ChatOptions>();
  command.add_option("model_tag", options->model.model, "the model: see --model");
  command.add_option("--system", options->system, "a system prompt");
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->model);
  return [options] { return chat(*options); };
}

}  // namespace quire::apps
