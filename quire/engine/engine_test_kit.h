// EngineKit: an engine over a fake runner, and a collector of streams, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quire/engine/engine.h"
#include "quire/engine/fake_runner.h"
#include "quire/engine/text_stream.h"
#include "quire/text/tokenizer.h"

namespace quire::engine {

struct CollectedChoice {
  std::vector<int32_t> tokens;
  std::vector<runner::PositionLogprobs> logprobs;
  std::vector<std::string> deltas;  // not empty ones; filled where a tokenizer was given
  FinishReason finish = FinishReason::kNone;
  std::optional<int32_t> stop_token;
  std::optional<std::string> stop_string;
  std::optional<Error> error;
  bool drop_last_text = false;

  std::string text() const {
    std::string joined;
    for (const std::string& delta : deltas) joined += delta;
    return joined;
  }
};

struct Collected {
  std::vector<CollectedChoice> choices;
  std::vector<runner::PositionLogprobs> prompt_logprobs;
  std::optional<RequestSummary> summary;
};

/// Reads a stream to its end.
inline Collected collect(OutputStream& stream, const text::Tokenizer* tokenizer = nullptr) {
  Collected got;
  std::vector<std::unique_ptr<ChoiceText>> texts;
  std::vector<OutputEvent> events;
  while (stream.wait(events)) {
    for (OutputEvent& event : events) {
      const auto index = static_cast<size_t>(event.choice);
      if (got.choices.size() <= index) got.choices.resize(index + 1);
      CollectedChoice& choice = got.choices[index];
      EXPECT_EQ(choice.finish, FinishReason::kNone) << "an event after the last";
      choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
      choice.logprobs.insert(choice.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
      if (!event.prompt_logprobs.empty()) got.prompt_logprobs = event.prompt_logprobs;
      choice.finish = event.finish;
      choice.stop_token = event.stop_token;
      choice.stop_string = event.stop_string;
      choice.error = event.error;
      choice.drop_last_text = event.drop_last_text;
      if (event.summary) got.summary = event.summary;
      if (tokenizer == nullptr) continue;
      while (texts.size() <= index) texts.push_back(std::make_unique<ChoiceText>(*tokenizer, true));
      std::string delta = texts[index]->push(event);
      if (!delta.empty()) choice.deltas.push_back(std::move(delta));
    }
  }
  return got;
}

class EngineKit {
 public:
  static constexpr int64_t kVocab = 100;

  struct Options {
    Engine::Options engine = {};
    std::function<int32_t(const sched::RowStart&, int32_t)> next_token = {};
    std::chrono::microseconds step_time{0};
    std::chrono::microseconds token_time{0};
    int64_t fail_at_step = -1;
    const text::Tokenizer* tokenizer = nullptr;
  };

  explicit EngineKit(Options options) {
    sched::SchedulerOptions& scheduler = options.engine.scheduler;
    if (scheduler.num_blocks == 0) scheduler.num_blocks = 256;
    if (scheduler.max_model_len == 0) scheduler.max_model_len = 512;
    if (options.engine.vocab_size == 0) options.engine.vocab_size = kVocab;
    if (!options.next_token) {
      options.next_token = [this](const sched::RowStart& row, int32_t position) {
        return token_at(row.prompt[0], position);
      };
    }
    runner = std::make_unique<FakeRunner>(FakeRunner::Options{
        .max_rows = scheduler.max_num_seqs,
        .next_token = options.next_token,
        .step_time = options.step_time,
        .token_time = options.token_time,
        .fail_at_step = options.fail_at_step,
    });
    engine = std::make_unique<Engine>(options.engine, *runner, options.tokenizer);
  }

  /// What the fake runner samples, unless told otherwise.
  int32_t token_at(int32_t first, int32_t position) const {
    return static_cast<int32_t>(
        (static_cast<uint32_t>(first) * 7919u + static_cast<uint32_t>(position) * 104729u) %
        kVocab);
  }

  EngineRequest request(std::vector<int32_t> prompt, int32_t max_tokens) const {
    EngineRequest made;
    made.prompt = std::move(prompt);
    made.sampling.max_tokens = max_tokens;
    return made;
  }

  OutputStream submit(EngineRequest request) {
    Result<OutputStream> result = engine->submit(std::move(request));
    EXPECT_TRUE(result.ok()) << result.error().message;
    return std::move(result).value();
  }

  Collected run(EngineRequest request, const text::Tokenizer* tokenizer = nullptr) {
    OutputStream stream = submit(std::move(request));
    return collect(stream, tokenizer);
  }

  std::unique_ptr<FakeRunner> runner;
  std::unique_ptr<Engine> engine;
};

}  // namespace quire::engine
