#include "quire/llm/llm.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "quire/base/check.h"
#include "quire/base/log.h"
#include "quire/llm/parts.h"

namespace quire::llm {
namespace {

/// The ids at which generation ends by itself; those outside the logits' width are left out.
std::vector<int32_t> eos_ids(const Parts& parts) {
  std::vector<int32_t> wanted = parts.config.eos_token_ids;
  if (parts.tokenizer != nullptr && parts.tokenizer->spec().eos_id) {
    wanted.push_back(*parts.tokenizer->spec().eos_id);
  }
  std::vector<int32_t> ids;
  for (const int32_t id : wanted) {
    if (id < 0 || id >= parts.vocab_size) {
      log_warning("the end-of-sequence id {} lies outside the vocabulary of {}", id,
                  parts.vocab_size);
    } else if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
      ids.push_back(id);
    }
  }
  return ids;
}

engine::Engine::Options engine_options(const Options& options, const Parts& parts) {
  engine::Engine::Options engine;
  engine.scheduler = parts.scheduler;
  engine.vocab_size = parts.vocab_size;
  engine.max_logprobs = options.max_logprobs;
  engine.eos_token_ids = eos_ids(parts);
  engine.max_waiting_requests = options.max_waiting_requests;
  engine.max_waiting_prompt_tokens = options.max_waiting_prompt_tokens;
  engine.target_itl = std::chrono::duration_cast<engine::Clock::duration>(
      std::chrono::duration<double, std::milli>(options.target_itl_ms));
  engine.kept_tier = parts.kept_tier.get();
  engine.on_step = options.on_step;
  engine.on_block_freed = parts.on_block_freed;
  return engine;
}

/// Appends what an event brought to its choice.
void take_event(engine::OutputEvent& event, RequestOutput& output, engine::ChoiceText* text) {
  CompletionOutput& choice = output.outputs[static_cast<size_t>(event.choice)];
  if (text != nullptr) choice.text += text->push(event);
  choice.token_ids.insert(choice.token_ids.end(), event.tokens.begin(), event.tokens.end());
  std::move(event.logprobs.begin(), event.logprobs.end(), std::back_inserter(choice.logprobs));
  if (!event.prompt_logprobs.empty()) output.prompt_logprobs = std::move(event.prompt_logprobs);
  if (event.summary) output.summary = *event.summary;
  if (event.finish == engine::FinishReason::kNone) return;
  choice.finish_reason = event.finish;
  choice.stop_token = event.stop_token;
  choice.stop_string = std::move(event.stop_string);
  choice.error = std::move(event.error);
}

Error no_tokenizer() {
  return invalid("This model has no tokenizer: give the prompt as token ids.", "prompt");
}

Error no_template() {
  return invalid("This model has no chat template; give one with --chat-template.", "messages");
}

/// A request on its way to being a RequestOutput.
struct Running {
  std::optional<engine::OutputStream> stream;
  int32_t n = 0;
  bool skip_special_tokens = true;
  RequestOutput output;

  /// Reads the stream to its end.
  void finish(const text::Tokenizer* tokenizer) {
    if (!stream) return;
    output.outputs.resize(static_cast<size_t>(n));
    std::vector<std::unique_ptr<engine::ChoiceText>> texts;
    for (int32_t i = 0; i < n; ++i) {
      output.outputs[static_cast<size_t>(i)].index = i;
      texts.push_back(tokenizer == nullptr
                          ? nullptr
                          : std::make_unique<engine::ChoiceText>(*tokenizer, skip_special_tokens));
    }
    std::vector<engine::OutputEvent> events;
    while (stream->wait(events)) {
      for (engine::OutputEvent& event : events) {
        take_event(event, output, texts[static_cast<size_t>(event.choice)].get());
      }
    }
    stream.reset();
  }
};

}  // namespace

struct LLM::Impl {
  Impl(Options given, Parts made)
      : options(std::move(given)),
        parts(std::move(made)),
        engine(engine_options(options, parts), *parts.runner, parts.tokenizer.get()) {}

  Options options;
  Parts parts;
  engine::Engine engine;  // dies first
};

LLM::LLM(const Options& options) : LLM(options, open_parts(options)) {}

LLM::LLM(const Options& options, Parts parts)
    : impl_(std::make_unique<Impl>(options, std::move(parts))) {}

LLM::~LLM() = default;

std::vector<RequestOutput> LLM::generate(std::span<const std::string> prompts,
                                         const SamplingParams& params) {
  if (!has_tokenizer()) {
    return std::vector<RequestOutput>(prompts.size(), {.error = no_tokenizer()});
  }
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& prompt : prompts) {
    ids.push_back(tokenizer().encode(prompt, /*add_special_tokens=*/true));
  }
  return generate(ids, params);
}

std::vector<RequestOutput> LLM::generate(std::span<const std::vector<int32_t>> prompts,
                                         const SamplingParams& params) {
  std::vector<Running> running(prompts.size());
  size_t unread = 0;  // every earlier one has been read to its end
  for (size_t i = 0; i < prompts.size(); ++i) {
    Running& now = running[i];
    now.output.prompt_token_ids = prompts[i];
    Result<engine::EngineRequest> request = make_request(prompts[i], params);
    if (!request) {
      now.output.error = request.error();
      continue;
    }
    now.n = request->n;
    now.skip_special_tokens = request->skip_special_tokens;
    for (;;) {
      Result<engine::OutputStream> stream = impl_->engine.submit(*request);
      if (stream) {
        now.stream.emplace(std::move(stream).value());
        break;
      }
      // A full queue empties as requests end; with none of ours in it, somebody else's fill it.
      if (stream.error().kind != ErrorKind::kOverloaded || unread == i) {
        now.output.error = stream.error();
        break;
      }
      running[unread++].finish(impl_->parts.tokenizer.get());
    }
  }
  std::vector<RequestOutput> outputs;
  for (Running& one : running) {
    one.finish(impl_->parts.tokenizer.get());
    outputs.push_back(std::move(one.output));
  }
  return outputs;
}

RequestOutput LLM::chat(const text::Value::List& messages, const SamplingParams& params) {
  RequestOutput output;
  Result<ChatPrompt> prompt =
      chat_prompt({{"messages", text::Value(messages)}, {"add_generation_prompt", true}});
  if (!prompt) {
    output.error = prompt.error();
    return output;
  }
  const std::vector<std::vector<int32_t>> ids = {std::move(prompt->ids)};
  return std::move(generate(ids, params).front());
}

text::Value::Dict LLM::special_token_variables(const text::Value::Dict& given) const {
  text::Value::Dict variables;
  if (!has_tokenizer()) return variables;
  const text::TokenizerSpec& spec = tokenizer().spec();
  const auto add = [&](const char* name, const std::string& token) {
    const bool is_given = std::any_of(given.begin(), given.end(),
                                      [name](const auto& entry) { return entry.first == name; });
    if (!is_given && !token.empty()) variables.emplace_back(name, token);
  };
  add("bos_token", spec.bos_token);
  add("eos_token", spec.eos_token);
  add("unk_token", spec.unk_token);
  add("pad_token", spec.pad_token);
  return variables;
}

Result<std::string> LLM::render_chat(text::Value::Dict variables) const {
  if (impl_->parts.chat_template == nullptr) return no_template();
  for (auto& added : special_token_variables(variables)) variables.push_back(std::move(added));
  return impl_->parts.chat_template->render(variables);
}

Result<ChatPrompt> LLM::chat_prompt(text::Value::Dict variables, bool add_special_tokens) const {
  if (impl_->parts.chat_template == nullptr) return no_template();
  if (!has_tokenizer()) return no_tokenizer();
  const text::Value::Dict added = special_token_variables(variables);
  return make_chat_prompt(*impl_->parts.chat_template, tokenizer(), std::move(variables), added,
                          add_special_tokens);
}

Result<engine::EngineRequest> LLM::make_request(std::vector<int32_t> prompt,
                                                const SamplingParams& params) const {
  return llm::make_request(std::move(prompt), merge_defaults(params, impl_->parts.generation),
                           max_model_len(), impl_->parts.generation.max_new_tokens);
}

engine::Engine& LLM::engine() {
  return impl_->engine;
}

bool LLM::has_tokenizer() const {
  return impl_->parts.tokenizer != nullptr;
}

const text::Tokenizer& LLM::tokenizer() const {
  QUIRE_CHECK_MSG(has_tokenizer(), "the model has no tokenizer");
  return *impl_->parts.tokenizer;
}

const text::ChatTemplate* LLM::chat_template() const {
  return impl_->parts.chat_template.get();
}

const checkpoint::ModelConfig& LLM::config() const {
  return impl_->parts.config;
}

const checkpoint::GenerationDefaults& LLM::generation_defaults() const {
  return impl_->parts.generation;
}

const MemoryReport& LLM::memory() const {
  return impl_->parts.memory;
}

const MemoryLedger& LLM::ledger() const {
  return *impl_->parts.ledger;
}

int64_t LLM::max_model_len() const {
  return impl_->parts.scheduler.max_model_len;
}

std::string_view LLM::backend_name() const {
  return impl_->parts.backend_name;
}

const Options& LLM::options() const {
  return impl_->options;
}

}  // namespace quire::llm
