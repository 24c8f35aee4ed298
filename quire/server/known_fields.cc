#include "quire/server/known_fields.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "quire/base/log.h"
#include "quire/server/json_fields.h"

namespace quire::server {
namespace {

namespace json = boost::json;
using Neutral = bool (*)(const json::value&);

bool only_null(const json::value&) {
  return false;
}  // null never gets here
bool is_false(const json::value& v) {
  return v.is_bool() && !v.get_bool();
}
bool any_bool(const json::value& v) {
  return v.is_bool();
}
bool is_empty(const json::value& v) {
  return (v.is_array() && v.get_array().empty()) || (v.is_object() && v.get_object().empty()) ||
         (v.is_string() && v.get_string().empty());
}
bool is_one(const json::value& v) {
  return v.is_number() && v.to_number<double>() == 1;
}
bool plain_text(const json::value& v) {
  const json::value* type = v.is_object() ? v.get_object().if_contains("type") : nullptr;
  return type != nullptr && *type == "text";
}
bool no_tools(const json::value& v) {
  return v == "none" || v == "auto";
}
bool text_only(const json::value& v) {
  return v == json::value(json::array{"text"});
}

struct Field {
  std::string_view name;
  Neutral neutral;
};

// Values other than null and the neutral one are refused. The rest of the API is read in
// openai_request.cc.
constexpr Field kFields[] = {
    {"tools", is_empty},
    {"tool_choice", no_tools},
    {"parallel_tool_calls", any_bool},  // says nothing without tools
    {"functions", is_empty},
    {"function_call", no_tools},
    {"response_format", plain_text},
    {"structured_outputs", is_empty},
    {"guided_json", only_null},
    {"guided_regex", only_null},
    {"guided_choice", only_null},
    {"guided_grammar", only_null},
    {"best_of", is_one},
    {"use_beam_search", is_false},
    {"length_penalty", is_one},
    {"early_stopping", is_false},
    {"suffix", is_empty},
    {"audio", only_null},
    {"modalities", text_only},
    {"prediction", only_null},
    {"web_search_options", only_null},
    {"reasoning_effort", only_null},
    {"continue_final_message", is_false},
    {"chat_template", only_null},  // a client's own template is off by default
    {"documents", is_empty},
    {"mm_processor_kwargs", is_empty},
    {"media_io_kwargs", is_empty},
    {"truncate_prompt_tokens", only_null},
    {"bad_words", is_empty},
    {"logits_processors", is_empty},
    {"thinking_token_budget", only_null},
    {"kv_transfer_params", is_empty},
    {"vllm_xargs", is_empty},
    {"prompt_embeds", only_null},
};

// Part of chat requests only in some servers; completions have it built.
constexpr Field kChatFields[] = {{"echo", is_false}};

// Read by openai_request.cc, or without any effect on the tokens: who asks, how it is billed or
// stored. cache_salt keeps tenants' cached prefixes apart.
constexpr std::string_view kNames[] = {
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "cache_salt",
    "chat_template_kwargs",
    "echo",
    "frequency_penalty",
    "ignore_eos",
    "include_stop_str_in_output",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "min_p",
    "min_tokens",
    "model",
    "n",
    "presence_penalty",
    "prompt",
    "prompt_cache_key",
    "prompt_logprobs",
    "repetition_penalty",
    "request_id",
    "return_token_ids",
    "safety_identifier",
    "seed",
    "service_tier",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop",
    "stop_token_ids",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "top_k",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
};

bool is_known(std::string_view name) {
  const auto is_name = [name](const Field& field) { return field.name == name; };
  return std::any_of(std::begin(kFields), std::end(kFields), is_name) ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

template <size_t kCount>
std::optional<Error> refuse(const json::object& body, const Field (&fields)[kCount]) {
  for (const Field& field : fields) {
    const json::value* value = body.if_contains(field.name);
    if (value == nullptr || value->is_null() || field.neutral(*value)) continue;
    return invalid(fmt::format("{} is not supported by this server yet", field.name),
                   std::string(field.name));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> refuse_unsupported(const json::object& body, bool chat) {
  std::optional<Error> error = refuse(body, kFields);
  if (!error && chat) error = refuse(body, kChatFields);
  return error;
}

std::vector<std::string> unknown_fields(const json::object& body) {
  constexpr size_t kMaxFields = 16;
  constexpr size_t kMaxBytes = 64;
  std::vector<std::string> names;
  for (const auto& [key, value] : body) {
    if (is_known(key)) continue;
    names.emplace_back(cut_utf8(key, kMaxBytes));
    if (names.size() == kMaxFields) break;
  }
  return names;
}

bool UnknownFieldLog::note(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (seen_.size() >= kMaxNames || !seen_.emplace(name).second) return false;
  }
  log_info("ignored the unknown request field \"{}\" (said once)", name);
  return true;
}

}  // namespace quire::server
