#include "quire/server/generation.h"

#include <utility>

#include "quire/base/log.h"
#include "quire/server/error_response.h"
#include "quire/text/detokenizer.h"

namespace quire::server {

namespace json = boost::json;

Generation::Generation(OpenAiRequest request, ResponseIdentity identity,
                       const text::Tokenizer& tokenizer, Observer observer,
                       std::vector<std::pair<std::string, std::string>> headers,
                       std::shared_ptr<ResponseWriter> writer)
    : request_(std::move(request)),
      identity_(std::move(identity)),
      tokenizer_(&tokenizer),
      observer_(std::move(observer)),
      headers_(std::move(headers)),
      writer_(std::move(writer)) {}

bool Generation::submit(engine::Engine& engine, std::vector<Prompt> prompts) {
  for (Prompt& prompt : prompts) {
    const int32_t n = prompt.request.n;
    std::vector<int32_t> ids = prompt.request.prompt;
    auto submitted = engine.submit(std::move(prompt.request));
    if (!submitted.ok()) {
      fail(submitted.error());
      streams_.clear();
      return false;
    }
    Stream& stream = streams_.emplace_back(Stream{
        std::move(submitted).value(), std::move(prompt.text), std::move(ids), {}, {}, false});
    for (int32_t choice = 0; choice < n; ++choice) {
      stream.choices.emplace_back(*tokenizer_, request_.params.skip_special_tokens);
    }
    usage_.prompt_tokens += static_cast<int64_t>(stream.prompt.size());
  }
  return true;
}

void Generation::start(engine::Engine& engine, std::vector<Prompt> prompts) {
  if (!submit(engine, std::move(prompts))) return;
  writer_->on_disconnect([self = shared_from_this()] {
    self->over_ = true;
    self->streams_.clear();
  });
  if (over_) return;
  if (request_.stream) {
    streaming_begun_ = true;
    writer_->begin_stream({.status = 200,
                           .body = "",
                           .content_type = "text/event-stream; charset=utf-8",
                           .headers = headers_,
                           .idle_bytes = ": keep-alive\n\n"});
  }
  const auto waker = std::make_shared<Waker>();
  waker->generation = weak_from_this();
  waker->writer = writer_;
  for (Stream& stream : streams_) {
    stream.output.set_notify([waker] { wake(waker); });
  }
}

// On the engine's thread: one post however many streams of this request got events.
void Generation::wake(const std::shared_ptr<Waker>& waker) {
  if (waker->posted.exchange(true)) return;
  const auto writer = waker->writer.lock();
  if (writer == nullptr) return;
  writer->post([waker] {
    waker->posted.store(false);
    if (const auto self = waker->generation.lock()) self->pump();
  });
}

void Generation::pump() {
  if (over_) return;
  try {
    read_streams();
  } catch (const std::exception& error) {
    if (over_) throw;  // answering itself failed: the connection's to end
    fail({ErrorKind::kInternal, error.what(), ""});
  }
  if (over_) streams_.clear();
}

void Generation::read_streams() {
  bool all_ended = true;
  for (size_t i = 0; i < streams_.size(); ++i) {
    while (!streams_[i].ended) {
      std::vector<engine::OutputEvent> events = std::move(events_);
      streams_[i].ended = !streams_[i].output.take(events);
      const bool nothing = events.empty();
      for (engine::OutputEvent& event : events) {
        take_event(i, event);
        if (over_) return;
      }
      events_ = std::move(events);
      if (nothing) break;
    }
    all_ended = all_ended && streams_[i].ended;
  }
  if (all_ended) finish();
}

void Generation::take_event(size_t stream_index, engine::OutputEvent& event) {
  Stream& stream = streams_[stream_index];
  Choice& choice = stream.choices[static_cast<size_t>(event.choice)];
  if (observer_.on_event) {
    const bool first = choice.num_tokens == 0;
    observer_.on_event(event, first,
                       first ? engine::Clock::duration{} : event.time - choice.last_event);
  }
  choice.last_event = event.time;
  choice.num_tokens += static_cast<int64_t>(event.tokens.size());
  usage_.completion_tokens += static_cast<int64_t>(event.tokens.size());
  if (event.summary) usage_.cached_tokens += event.summary->num_cached_tokens;
  if (event.error) return fail(*event.error);
  // Whoever hung up reads no events: the engine itself was stopped.
  if (event.finish == engine::FinishReason::kAbort) {
    return fail(
        {ErrorKind::kUnavailable, "The server was shut down before this request was done.", ""});
  }
  if (!event.prompt_logprobs.empty()) stream.prompt_logprobs = std::move(event.prompt_logprobs);

  const auto index = static_cast<int32_t>(stream_index * stream.choices.size()) + event.choice;
  ChoiceDelta delta = delta_of(stream, choice, index, event);
  if (request_.stream) {
    const bool tells_nothing = delta.text.empty() && !delta.first && delta.logprobs.is_null() &&
                               !delta.token_ids && delta.finish == engine::FinishReason::kNone;
    if (tells_nothing) return;  // text held back
    json::object out = chunk(identity_, std::move(delta));
    if (request_.continuous_usage) {
      out["usage"] = usage_json(usage_);
    } else if (request_.include_usage) {
      out["usage"] = nullptr;
    }
    writer_->write(sse(out));
    return;
  }
  ChoiceDelta& whole = choice.whole;
  whole.index = index;
  whole.text += delta.text;
  if (delta.token_ids) {
    if (!whole.token_ids) whole.token_ids.emplace();
    whole.token_ids->insert(whole.token_ids->end(), delta.token_ids->begin(),
                            delta.token_ids->end());
  }
  if (delta.prompt_token_ids) whole.prompt_token_ids = std::move(delta.prompt_token_ids);
  if (!delta.prompt_logprobs.is_null()) whole.prompt_logprobs = std::move(delta.prompt_logprobs);
  if (delta.finish != engine::FinishReason::kNone) {
    whole.finish = delta.finish;
    whole.stop_token = delta.stop_token;
    whole.stop_string = std::move(delta.stop_string);
  }
}

// What comes before a choice's first token: the echoed prompt and its scores.
void Generation::begin_choice(Stream& stream, Choice& choice, ChoiceDelta& delta) {
  choice.begun = true;
  delta.first = true;
  if (request_.return_token_ids) delta.prompt_token_ids = stream.prompt;
  if (request_.echo) {
    delta.text = stream.prompt_text.empty()
                     ? text::replace_invalid_utf8(
                           tokenizer_->decode(stream.prompt, request_.params.skip_special_tokens))
                     : stream.prompt_text;
    if (request_.params.logprobs) {
      choice.legacy.add_bare(stream.prompt[0]);
      for (const auto& position : stream.prompt_logprobs) choice.legacy.add(position);
    }
  }
  if (request_.params.prompt_logprobs && !(request_.echo && request_.params.logprobs)) {
    delta.prompt_logprobs = prompt_logprobs_json(*tokenizer_, stream.prompt_logprobs);
  }
}

ChoiceDelta Generation::delta_of(Stream& stream, Choice& choice, int32_t index,
                                 engine::OutputEvent& event) {
  ChoiceDelta delta;
  delta.index = index;
  if (!choice.begun) begin_choice(stream, choice, delta);
  delta.text += choice.text.push(event);
  delta.finish = event.finish;
  delta.stop_token = event.stop_token;
  delta.stop_string = std::move(event.stop_string);
  if (request_.return_token_ids) delta.token_ids = event.tokens;
  if (!request_.params.logprobs) return delta;
  if (!request_.stream && identity_.chat) {
    choice.logprobs.insert(choice.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  } else if (identity_.chat) {
    delta.logprobs = chat_logprobs(*tokenizer_, event.logprobs);
  } else {
    for (const auto& position : event.logprobs) choice.legacy.add(position);
    if (request_.stream) delta.logprobs = choice.legacy.take();
  }
  return delta;
}

void Generation::fail(const Error& error) {
  over_ = true;
  if (error.kind == ErrorKind::kInternal) log_error("request {}: {}", identity_.id, error.message);
  if (streaming_begun_) {
    writer_->write("data: " + error_body(error) + "\n\ndata: [DONE]\n\n");
    writer_->end_stream();
  } else {
    HttpResponse response = error_response(error);
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    writer_->send(std::move(response));
  }
}

void Generation::finish() {
  if (request_.stream) {
    if (request_.include_usage) writer_->write(sse(usage_chunk(identity_, usage_)));
    writer_->write("data: [DONE]\n\n");
    over_ = true;
    writer_->end_stream();
  } else {
    std::vector<ChoiceDelta> choices;
    for (Stream& stream : streams_) {
      for (Choice& choice : stream.choices) {
        if (request_.params.logprobs) {
          choice.whole.logprobs = identity_.chat ? chat_logprobs(*tokenizer_, choice.logprobs)
                                                 : json::value(choice.legacy.take());
        }
        choices.push_back(std::move(choice.whole));
      }
    }
    HttpResponse response;
    response.body = json::serialize(whole_response(identity_, std::move(choices), usage_));
    response.headers = headers_;
    over_ = true;
    writer_->send(std::move(response));
  }
}

}  // namespace quire::server
