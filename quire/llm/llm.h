// LLM: a model opened and wired: files to tokens to text; what C++ programs and the apps include.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/base/memory_ledger.h"
#include "quire/base/result.h"
#include "quire/checkpoint/model_config.h"
#include "quire/engine/engine.h"
#include "quire/engine/text_stream.h"
#include "quire/llm/chat_prompt.h"
#include "quire/llm/memory_report.h"
#include "quire/llm/options.h"
#include "quire/llm/sampling_params.h"
#include "quire/text/chat_template.h"
#include "quire/text/tokenizer.h"

namespace quire::llm {

struct Parts;

/// One of a request's n answers.
struct CompletionOutput {
  int32_t index = 0;
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<runner::PositionLogprobs> logprobs;  // when asked for
  engine::FinishReason finish_reason = engine::FinishReason::kNone;
  std::optional<int32_t> stop_token = {};
  std::optional<std::string> stop_string = {};
  std::optional<Error> error = {};  // with kError
};

struct RequestOutput {
  std::vector<int32_t> prompt_token_ids = {};
  std::vector<runner::PositionLogprobs> prompt_logprobs =
      {};                                      // when asked for; of tokens 1, 2, ...
  std::vector<CompletionOutput> outputs = {};  // by choice
  engine::RequestSummary summary = {};
  std::optional<Error> error = {};  // the request was refused; `outputs` is empty
};

class LLM {
 public:
  /// Opens the model and starts its engine. Throws LoadError.
  explicit LLM(const Options& options);
  /// Starts an engine over parts that lie ready (parts.h); what tests of the layers above do.
  LLM(const Options& options, Parts parts);
  ~LLM();
  LLM(const LLM&) = delete;
  LLM& operator=(const LLM&) = delete;

  /// Generates for all prompts together; returns when all have ended, in the order given.
  std::vector<RequestOutput> generate(std::span<const std::string> prompts,
                                      const SamplingParams& params);
  std::vector<RequestOutput> generate(std::span<const std::vector<int32_t>> prompts,
                                      const SamplingParams& params);
  /// One chat: a list of {role, content} dicts, rendered by the model's template.
  RequestOutput chat(const text::Value::List& messages, const SamplingParams& params);

  /// The prompt of a chat request as text; `variables` (messages, tools, add_generation_prompt,
  /// ...) reach the template, with the tokenizer's special tokens added where they are not given.
  Result<std::string> render_chat(text::Value::Dict variables) const;
  /// The same as the model reads it: special tokens that a message spells are text (chat_prompt.h).
  /// Templates write BOS and the like themselves, so `add_special_tokens` is rarely wanted.
  Result<ChatPrompt> chat_prompt(text::Value::Dict variables,
                                 bool add_special_tokens = false) const;
  /// A checked engine request: the model's sampling defaults merged, a seed drawn.
  Result<engine::EngineRequest> make_request(std::vector<int32_t> prompt,
                                             const SamplingParams& params) const;

  engine::Engine& engine();
  /// False for a model whose files hold none; such a one is given ids alone.
  bool has_tokenizer() const;
  const text::Tokenizer& tokenizer() const;
  /// Null when the model has none.
  const text::ChatTemplate* chat_template() const;
  const checkpoint::ModelConfig& config() const;
  const checkpoint::GenerationDefaults& generation_defaults() const;
  const MemoryReport& memory() const;
  /// Every large allocation of the engine, by tag, now. Thread-safe.
  const MemoryLedger& ledger() const;
  int64_t max_model_len() const;
  std::string_view backend_name() const;  // with its instruction-set level: "cpu/avx512"
  const Options& options() const;

 private:
  text::Value::Dict special_token_variables(const text::Value::Dict& given) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Counts what opening the model with these options would take, without reading its weights.
/// Throws LoadError.
MemoryReport count_memory(const Options& options);

}  // namespace quire::llm
