#include "quire/bench/load/stream_record.h"

#include <boost/json.hpp>

namespace quire::bench {
namespace {

namespace json = boost::json;

const json::object* object_at(const json::object& parent, const char* key) {
  const json::value* value = parent.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

bool has_text(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text != nullptr && !text->empty();
}

int64_t number_at(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  const int64_t* number = value == nullptr ? nullptr : value->if_int64();
  return number == nullptr ? 0 : *number;
}

bool brings_text(const json::object& choice) {
  if (has_text(choice, "text")) return true;
  const json::object* delta = object_at(choice, "delta");
  return delta != nullptr && (has_text(*delta, "content") || has_text(*delta, "reasoning_content"));
}

std::string error_of(const json::object& event) {
  const json::value& error = event.at("error");
  const json::object* fields = error.if_object();
  if (fields != nullptr && has_text(*fields, "message")) {
    return std::string(fields->at("message").get_string());
  }
  return json::serialize(error);
}

}  // namespace

bool StreamReader::take(std::string_view data, double now_s, StreamRecord& record) {
  if (data == "[DONE]") {
    done_ = true;
    return false;
  }
  boost::system::error_code failed;
  const json::value value = json::parse({data.data(), data.size()}, failed);
  const json::object* event = failed ? nullptr : value.if_object();
  if (event == nullptr) {
    record.error = "an event that is no JSON object";
    return true;
  }
  if (event->contains("error")) record.error = error_of(*event);
  const json::value* choices = event->if_contains("choices");
  if (choices != nullptr && choices->is_array() && !choices->get_array().empty()) {
    if (first_event_s_ < 0) first_event_s_ = now_s;
    const json::object* choice = choices->get_array().front().if_object();
    if (choice != nullptr && brings_text(*choice)) record.token_times_s.push_back(now_s);
  }
  if (const json::object* usage = object_at(*event, "usage")) {
    counted_ = true;
    record.prompt_tokens = number_at(*usage, "prompt_tokens");
    record.output_tokens = number_at(*usage, "completion_tokens");
    const json::object* details = object_at(*usage, "prompt_tokens_details");
    if (details != nullptr) record.cached_tokens = number_at(*details, "cached_tokens");
  }
  return true;
}

void StreamReader::finish(StreamRecord& record) {
  if (!record.ok()) return;
  // Tokens of random prompts may well decode to no text at all.
  if (record.token_times_s.empty() && first_event_s_ >= 0) {
    record.token_times_s.push_back(first_event_s_);
  }
  if (!counted_) record.output_tokens = static_cast<int64_t>(record.token_times_s.size());
  if (record.token_times_s.empty()) {
    record.error = "the answer brought no token";
  } else if (!done_) {
    record.error = "the stream ended before [DONE]";
  }
}

}  // namespace quire::bench
