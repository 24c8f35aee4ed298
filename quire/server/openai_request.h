// OpenAiRequest: a /v1/completions or /v1/chat/completions body, checked and typed.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <boost/json.hpp>

#include "quire/base/result.h"
#include "quire/llm/sampling_params.h"
#include "quire/text/chat_template.h"

namespace quire::server {

struct OpenAiRequest {
  std::optional<std::string> model;
  llm::SamplingParams params;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
  std::string request_id;  // from the body; empty when not given
  std::vector<std::string> unknown_fields;

  // Completions: one answer a prompt (times n).
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  bool echo = false;
  bool add_special_tokens = true;

  // Chat: what the template sees.
  text::Value::Dict template_variables;
  bool chat = false;
};

/// `body` is the request's JSON text. Errors name the field.
Result<OpenAiRequest> parse_completion_request(std::string_view body);
Result<OpenAiRequest> parse_chat_request(std::string_view body);

}  // namespace quire::server
