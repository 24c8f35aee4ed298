// Generation: one HTTP request's prompts under way in the engine, turned into its response as their
// tokens come.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quire/engine/engine.h"
#include "quire/engine/text_stream.h"
#include "quire/server/http.h"
#include "quire/server/openai_request.h"
#include "quire/server/openai_response.h"
#include "quire/text/tokenizer.h"

namespace quire::server {

/// Held by the connection's disconnect callback, which lives as long as the exchange; the engine
/// holds a Waker alone. So the end of the exchange, however it comes, drops the streams, and with
/// them what still runs is cancelled. All of it runs on the connection's executor.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Observer {
    /// After each batch of events, with the choice's event; for histograms. May be empty.
    std::function<void(const engine::OutputEvent&, bool first_of_choice,
                       engine::Clock::duration since_last)>
        on_event;
  };

  struct Prompt {
    std::string text;  // as given or rendered; empty for ids
    engine::EngineRequest request;
  };

  Generation(OpenAiRequest request, ResponseIdentity identity, const text::Tokenizer& tokenizer,
             Observer observer, std::vector<std::pair<std::string, std::string>> headers,
             std::shared_ptr<ResponseWriter> writer);

  /// Submits all prompts; when one is refused, those before it are cancelled and its error is the
  /// answer.
  void start(engine::Engine& engine, std::vector<Prompt> prompts);

 private:
  struct Choice {
    explicit Choice(const text::Tokenizer& tokenizer, bool skip_special_tokens)
        : text(tokenizer, skip_special_tokens), legacy(tokenizer) {}
    engine::ChoiceText text;
    LegacyLogprobs legacy;
    ChoiceDelta whole;  // not streaming: what has come so far
    std::vector<runner::PositionLogprobs> logprobs;
    bool begun = false;
    int64_t num_tokens = 0;
    engine::Clock::time_point last_event;
  };
  struct Stream {
    engine::OutputStream output;
    std::string prompt_text;
    std::vector<int32_t> prompt;
    std::vector<Choice> choices;
    std::vector<runner::PositionLogprobs> prompt_logprobs;
    bool ended = false;
  };

  /// What the engine's thread holds of a generation. It must never hold the last reference to one:
  /// a stream cannot be dropped from inside its own notification.
  struct Waker {
    std::weak_ptr<Generation> generation;  // locked on the connection's executor only
    std::weak_ptr<ResponseWriter> writer;
    std::atomic<bool> posted{false};
  };
  static void wake(const std::shared_ptr<Waker>& waker);

  bool submit(engine::Engine& engine, std::vector<Prompt> prompts);
  void pump();
  void read_streams();
  void take_event(size_t stream_index, engine::OutputEvent& event);
  ChoiceDelta delta_of(Stream& stream, Choice& choice, int32_t index, engine::OutputEvent& event);
  void begin_choice(Stream& stream, Choice& choice, ChoiceDelta& delta);
  void fail(const Error& error);
  void finish();

  OpenAiRequest request_;
  ResponseIdentity identity_;
  const text::Tokenizer* tokenizer_;
  Observer observer_;
  std::vector<std::pair<std::string, std::string>> headers_;
  std::shared_ptr<ResponseWriter> writer_;
  std::vector<Stream> streams_;
  std::vector<engine::OutputEvent> events_;
  Usage usage_;
  bool streaming_begun_ = false;
  bool over_ = false;  // answered, or nobody is there to answer
};

}  // namespace quire::server
