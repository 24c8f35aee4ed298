// openai_response: the JSON objects of OpenAI's completion APIs, whole and in streamed chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "quire/engine/output.h"
#include "quire/runner/logprobs.h"
#include "quire/text/tokenizer.h"

namespace quire::server {

/// What all objects of one response share.
struct ResponseIdentity {
  std::string id;       // "chatcmpl-..." or "cmpl-..."
  int64_t created = 0;  // Unix seconds
  std::string model;
  bool chat = false;
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
};

/// A choice, or what one chunk adds to it.
struct ChoiceDelta {
  int32_t index = 0;
  std::string text;
  bool first = false;           // of a stream: the chat role goes with it
  boost::json::value logprobs;  // null when not asked for
  engine::FinishReason finish = engine::FinishReason::kNone;
  std::optional<int32_t> stop_token;
  std::optional<std::string> stop_string;
  std::optional<std::vector<int32_t>> token_ids;
  std::optional<std::vector<int32_t>> prompt_token_ids;
  boost::json::value prompt_logprobs;
};

boost::json::object usage_json(const Usage& usage);
/// The whole response. `chat` puts text into a message.
boost::json::object whole_response(const ResponseIdentity& identity,
                                   std::vector<ChoiceDelta> choices, const Usage& usage);
/// One streamed chunk.
boost::json::object chunk(const ResponseIdentity& identity, ChoiceDelta delta);
/// The last chunk, `choices: []`, when usage was asked for.
boost::json::object usage_chunk(const ResponseIdentity& identity, const Usage& usage);
/// "data: {...}\n\n"
std::string sse(const boost::json::value& value);

/// Chat's logprobs: {"content": [{token, logprob, bytes, top_logprobs}]}.
boost::json::value chat_logprobs(const text::Tokenizer& tokenizer,
                                 const std::vector<runner::PositionLogprobs>& logprobs);

/// The legacy object of /v1/completions: tokens, token_logprobs, top_logprobs, text_offset. Built
/// up as tokens come.
class LegacyLogprobs {
 public:
  explicit LegacyLogprobs(const text::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// A token without a log-probability: the echoed prompt's first.
  void add_bare(int32_t token);
  void add(const runner::PositionLogprobs& position);
  /// The object for what was added since the last take(); offsets go on counting.
  boost::json::object take();

 private:
  void add_token(int32_t token, boost::json::value logprob, boost::json::value top);

  const text::Tokenizer* tokenizer_;
  int64_t offset_ = 0;
  boost::json::array tokens_;
  boost::json::array token_logprobs_;
  boost::json::array top_logprobs_;
  boost::json::array text_offset_;
};

/// vLLM's extra: a list with null for the first token and {id: {logprob, rank, decoded_token}} for
/// the others.
boost::json::value prompt_logprobs_json(const text::Tokenizer& tokenizer,
                                        const std::vector<runner::PositionLogprobs>& positions);

}  // namespace quire::server
