#include "quire/server/openai_response.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "quire/text/detokenizer.h"

namespace quire::server {
namespace {

namespace json = boost::json;

// JSON has no -inf; clients of the API know this value for "impossible".
double finite(float logprob) {
  return std::isfinite(logprob) ? std::max(double{logprob}, -9999.0) : -9999.0;
}

std::string shown(const text::Tokenizer& tokenizer, int32_t token) {
  return text::replace_invalid_utf8(tokenizer.token_bytes(token));
}

json::array ids_json(const std::vector<int32_t>& ids) {
  return json::array(ids.begin(), ids.end());
}

json::object identity_json(const ResponseIdentity& identity, const char* object) {
  json::object out;
  out["id"] = identity.id;
  out["object"] = object;
  out["created"] = identity.created;
  out["model"] = identity.model;
  return out;
}

json::value finish_json(const ChoiceDelta& delta) {
  if (delta.finish == engine::FinishReason::kNone) return nullptr;
  return json::value(engine::finish_reason_name(delta.finish));
}

json::value stop_reason(const ChoiceDelta& delta) {
  if (delta.stop_string) return json::value(*delta.stop_string);
  if (delta.stop_token) return *delta.stop_token;
  return nullptr;
}

// The members that whole choices and chunks have in common.
void add_common(json::object& choice, ChoiceDelta& delta) {
  choice["index"] = delta.index;
  choice["logprobs"] = std::move(delta.logprobs);
  choice["finish_reason"] = finish_json(delta);
  choice["stop_reason"] = stop_reason(delta);
  if (delta.token_ids) choice["token_ids"] = ids_json(*delta.token_ids);
  if (!delta.prompt_logprobs.is_null())
    choice["prompt_logprobs"] = std::move(delta.prompt_logprobs);
}

}  // namespace

json::object usage_json(const Usage& usage) {
  json::object out;
  out["prompt_tokens"] = usage.prompt_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  out["prompt_tokens_details"] = json::object{{"cached_tokens", usage.cached_tokens}};
  return out;
}

json::object whole_response(const ResponseIdentity& identity, std::vector<ChoiceDelta> choices,
                            const Usage& usage) {
  json::object out = identity_json(identity, identity.chat ? "chat.completion" : "text_completion");
  json::array list;
  for (ChoiceDelta& delta : choices) {
    json::object choice;
    if (identity.chat) {
      choice["message"] =
          json::object{{"role", "assistant"}, {"content", delta.text}, {"refusal", nullptr}};
      if (delta.prompt_token_ids) out["prompt_token_ids"] = ids_json(*delta.prompt_token_ids);
      if (!delta.prompt_logprobs.is_null())
        out["prompt_logprobs"] = std::exchange(delta.prompt_logprobs, nullptr);
    } else {
      choice["text"] = delta.text;
      if (delta.prompt_token_ids) choice["prompt_token_ids"] = ids_json(*delta.prompt_token_ids);
    }
    add_common(choice, delta);
    list.push_back(std::move(choice));
  }
  out["choices"] = std::move(list);
  out["usage"] = usage_json(usage);
  return out;
}

json::object chunk(const ResponseIdentity& identity, ChoiceDelta delta) {
  json::object out =
      identity_json(identity, identity.chat ? "chat.completion.chunk" : "text_completion");
  json::object choice;
  if (identity.chat) {
    json::object content;
    if (delta.first) content["role"] = "assistant";
    content["content"] = delta.text;
    choice["delta"] = std::move(content);
    if (delta.prompt_token_ids) out["prompt_token_ids"] = ids_json(*delta.prompt_token_ids);
  } else {
    choice["text"] = delta.text;
    if (delta.prompt_token_ids) choice["prompt_token_ids"] = ids_json(*delta.prompt_token_ids);
  }
  add_common(choice, delta);
  out["choices"] = json::array{std::move(choice)};
  return out;
}

json::object usage_chunk(const ResponseIdentity& identity, const Usage& usage) {
  json::object out =
      identity_json(identity, identity.chat ? "chat.completion.chunk" : "text_completion");
  out["choices"] = json::array{};
  out["usage"] = usage_json(usage);
  return out;
}

std::string sse(const json::value& value) {
  return "data: " + json::serialize(value) + "\n\n";
}

json::value chat_logprobs(const text::Tokenizer& tokenizer,
                          const std::vector<runner::PositionLogprobs>& logprobs) {
  const auto entry = [&](const runner::TokenLogprob& token) {
    const std::string_view raw = tokenizer.token_bytes(token.token);
    json::array bytes;
    for (const char c : raw) bytes.push_back(static_cast<unsigned char>(c));
    return json::object{{"token", shown(tokenizer, token.token)},
                        {"logprob", finite(token.logprob)},
                        {"bytes", std::move(bytes)}};
  };
  json::array content;
  for (const runner::PositionLogprobs& position : logprobs) {
    json::object one = entry(position.chosen);
    json::array top;
    for (const runner::TokenLogprob& token : position.top) top.push_back(entry(token));
    one["top_logprobs"] = std::move(top);
    content.push_back(std::move(one));
  }
  return json::object{{"content", std::move(content)}, {"refusal", nullptr}};
}

void LegacyLogprobs::add_token(int32_t token, json::value logprob, json::value top) {
  std::string piece = shown(*tokenizer_, token);
  text_offset_.push_back(offset_);
  // Offsets count characters, as clients slice the text in Python.
  offset_ += std::count_if(piece.begin(), piece.end(),
                           [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  tokens_.push_back(json::value(piece));
  token_logprobs_.push_back(std::move(logprob));
  top_logprobs_.push_back(std::move(top));
}

void LegacyLogprobs::add_bare(int32_t token) {
  add_token(token, nullptr, nullptr);
}

void LegacyLogprobs::add(const runner::PositionLogprobs& position) {
  json::object top;
  for (const runner::TokenLogprob& token : position.top) {
    const auto [where, inserted] =
        top.emplace(shown(*tokenizer_, token.token), finite(token.logprob));
    if (!inserted) continue;  // two ids with one spelling: the likelier stays
  }
  top.emplace(shown(*tokenizer_, position.chosen.token), finite(position.chosen.logprob));
  add_token(position.chosen.token, finite(position.chosen.logprob), std::move(top));
}

json::object LegacyLogprobs::take() {
  json::object out;
  out["tokens"] = std::exchange(tokens_, {});
  out["token_logprobs"] = std::exchange(token_logprobs_, {});
  out["top_logprobs"] = std::exchange(top_logprobs_, {});
  out["text_offset"] = std::exchange(text_offset_, {});
  return out;
}

json::value prompt_logprobs_json(const text::Tokenizer& tokenizer,
                                 const std::vector<runner::PositionLogprobs>& positions) {
  json::array list{nullptr};
  for (const runner::PositionLogprobs& position : positions) {
    json::object one;
    const auto add = [&](const runner::TokenLogprob& token) {
      one.emplace(std::to_string(token.token),
                  json::object{{"logprob", finite(token.logprob)},
                               {"rank", token.rank},
                               {"decoded_token", shown(tokenizer, token.token)}});
    };
    add(position.chosen);
    for (const runner::TokenLogprob& token : position.top) add(token);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace quire::server
