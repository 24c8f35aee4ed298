#include "quire/server/openai_request.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "quire/llm/json_value.h"
#include "quire/server/chat_messages.h"
#include "quire/server/json_fields.h"
#include "quire/server/known_fields.h"

namespace quire::server {
namespace {

namespace json = boost::json;

constexpr int64_t kMaxInt = 0x7fffffff;
constexpr size_t kMaxPrompts = 1024;
constexpr size_t kMaxChoices = 4096;  // of all prompts of a request

std::optional<float> narrow(std::optional<double> value) {
  if (!value) return std::nullopt;
  return static_cast<float>(*value);
}

std::optional<int32_t> narrow(std::optional<int64_t> value) {
  if (!value) return std::nullopt;
  return static_cast<int32_t>(*value);
}

// {"50256": -100}: keys are ids in decimal.
void read_logit_bias(JsonFields& fields, llm::SamplingParams& params) {
  const json::value* value = fields.find("logit_bias");
  if (value == nullptr) return;
  constexpr std::string_view kExpected = "an object of token id to a number from -100 to 100";
  if (!value->is_object()) return fields.fail("logit_bias", kExpected);
  for (const auto& [key, bias] : value->get_object()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const double amount = bias.is_number() ? bias.to_number<double>() : 1e9;
    if (error != std::errc() || end != key.data() + key.size() || id < 0 ||
        !(amount >= -100 && amount <= 100)) {
      return fields.fail("logit_bias", kExpected);
    }
    params.logit_bias.emplace_back(id, static_cast<float>(amount));
  }
}

// Ranges that depend on each other or on the model are checked by llm:: and the engine; here are
// types and int widths.
void read_sampling(JsonFields& fields, llm::SamplingParams& params) {
  params.n = static_cast<int32_t>(fields.integer("n", 1, 128).value_or(1));
  params.temperature = narrow(fields.number("temperature", 0, 2));
  params.top_p = narrow(fields.number("top_p", 0, 1));
  params.top_k = narrow(fields.integer("top_k", -1, kMaxInt));
  params.min_p = narrow(fields.number("min_p", 0, 1));
  params.repetition_penalty = narrow(fields.number("repetition_penalty", 0, 100));
  params.presence_penalty =
      static_cast<float>(fields.number("presence_penalty", -2, 2).value_or(0));
  params.frequency_penalty =
      static_cast<float>(fields.number("frequency_penalty", -2, 2).value_or(0));
  params.seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  params.min_tokens = static_cast<int32_t>(fields.integer("min_tokens", 0, kMaxInt).value_or(0));
  params.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  params.stop = fields.strings("stop", 16);
  for (const std::string& stop : params.stop) {
    if (stop.empty()) fields.fail("stop", "strings that are not empty");
  }
  params.stop_token_ids = fields.ids("stop_token_ids");
  params.include_stop_str_in_output = fields.boolean("include_stop_str_in_output").value_or(false);
  params.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
  params.prompt_logprobs = narrow(fields.integer("prompt_logprobs", 0, kMaxInt));
  params.allowed_token_ids = fields.ids("allowed_token_ids");
  params.priority =
      static_cast<int32_t>(fields.integer("priority", INT32_MIN, kMaxInt).value_or(0));
  if (auto salt = fields.string("cache_salt")) {
    if (salt->empty()) fields.fail("cache_salt", "a string that is not empty");
    params.cache_salt = *std::move(salt);
  }
  read_logit_bias(fields, params);
}

void read_stream_options(JsonFields& fields, OpenAiRequest& request) {
  request.stream = fields.boolean("stream").value_or(false);
  const json::value* options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return fields.fail("stream_options", "an object");
  if (!request.stream) return fields.fail("stream_options", "nothing, as stream is not true");
  JsonFields inner(options->get_object(), "stream_options.");
  request.include_usage = inner.boolean("include_usage").value_or(false);
  request.continuous_usage = inner.boolean("continuous_usage_stats").value_or(false);
  if (inner.error()) fields.fail("stream_options", inner.error()->message);
}

void read_common(JsonFields& fields, OpenAiRequest& request) {
  request.model = fields.string("model");
  request.request_id = fields.string("request_id").value_or("");
  request.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  read_sampling(fields, request.params);
  read_stream_options(fields, request);
}

// A string, a list of strings, a list of ids, or a list of lists of ids.
void read_prompts(JsonFields& fields, OpenAiRequest& request) {
  constexpr std::string_view kExpected =
      "a string, a list of strings, a list of token ids or a list of such lists";
  const json::value* value = fields.find("prompt");
  if (value == nullptr) return fields.fail("prompt", kExpected);
  if (value->is_string()) {
    request.prompts.emplace_back(std::string(value->get_string()));
    return;
  }
  if (!value->is_array() || value->get_array().empty()) return fields.fail("prompt", kExpected);
  const json::array& list = value->get_array();
  if (as_id(list[0])) {
    request.prompts.emplace_back(fields.ids("prompt"));
    return;
  }
  if (list.size() > kMaxPrompts)
    return fields.fail("prompt", fmt::format("at most {} prompts", kMaxPrompts));
  for (const json::value& item : list) {
    if (item.is_string()) {
      request.prompts.emplace_back(std::string(item.get_string()));
    } else if (item.is_array()) {
      std::vector<int32_t> ids;
      for (const json::value& id : item.get_array()) {
        if (!as_id(id)) return fields.fail("prompt", kExpected);
        ids.push_back(*as_id(id));
      }
      request.prompts.emplace_back(std::move(ids));
    } else {
      return fields.fail("prompt", kExpected);
    }
  }
}

void read_completion(JsonFields& fields, OpenAiRequest& request) {
  read_common(fields, request);
  read_prompts(fields, request);
  if (request.prompts.size() * static_cast<size_t>(request.params.n) > kMaxChoices) {
    fields.fail("n", fmt::format("at most {} choices for all prompts together", kMaxChoices));
  }
  request.echo = fields.boolean("echo").value_or(false);
  request.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  const auto limit = fields.integer("max_completion_tokens", 0, kMaxInt);
  request.params.max_tokens = narrow(limit ? limit : fields.integer("max_tokens", 0, kMaxInt));
  if (!request.params.max_tokens) request.params.max_tokens = 16;
  request.params.logprobs = narrow(fields.integer("logprobs", 0, kMaxInt));
  if (request.params.max_tokens == 0 && !request.echo && !request.params.prompt_logprobs) {
    fields.fail("max_tokens", "at least 1 unless the prompt is echoed or scored");
  }
  // The legacy logprobs object covers the echoed prompt too.
  if (request.echo && request.params.logprobs && !request.params.prompt_logprobs) {
    request.params.prompt_logprobs = request.params.logprobs;
  }
}

void read_template_kwargs(JsonFields& fields, OpenAiRequest& request) {
  const json::value* kwargs = fields.find("chat_template_kwargs");
  if (kwargs == nullptr) return;
  if (!kwargs->is_object()) return fields.fail("chat_template_kwargs", "an object");
  for (const auto& [key, value] : kwargs->get_object()) {
    if (key == "messages" || key == "tools" || key == "chat_template" || key == "tokenize") {
      return fields.fail("chat_template_kwargs",
                         fmt::format("keys other than {}", std::string_view(key)));
    }
    request.template_variables.emplace_back(std::string(key), llm::to_value(value));
  }
}

void read_chat(JsonFields& fields, OpenAiRequest& request) {
  request.chat = true;
  read_common(fields, request);
  const json::value* messages = fields.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->get_array().empty()) {
    return fields.fail("messages", "a list of at least one message");
  }
  auto normal = normalise_messages(messages->get_array());
  if (!normal.ok()) return fields.fail("messages", normal.error().message);
  request.template_variables.emplace_back("messages", text::Value(std::move(normal).value()));
  const bool generation = fields.boolean("add_generation_prompt").value_or(true);
  request.template_variables.emplace_back("add_generation_prompt", text::Value(generation));
  read_template_kwargs(fields, request);
  request.add_special_tokens = fields.boolean("add_special_tokens").value_or(false);
  const auto limit = fields.integer("max_completion_tokens", 1, kMaxInt);
  request.params.max_tokens = narrow(limit ? limit : fields.integer("max_tokens", 1, kMaxInt));
  const auto top = fields.integer("top_logprobs", 0, kMaxInt);
  if (fields.boolean("logprobs").value_or(false)) {
    request.params.logprobs = static_cast<int32_t>(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    fields.fail("top_logprobs", "nothing, as logprobs is not true");
  }
}

Result<OpenAiRequest> parse(std::string_view body, void (*read)(JsonFields&, OpenAiRequest&)) {
  boost::system::error_code failure;
  json::parse_options options;
  options.max_depth = 64;
  const json::value value = json::parse(body, failure, {}, options);
  if (failure) return invalid(fmt::format("the body is not JSON: {}", failure.message()));
  if (!value.is_object()) return invalid("the body must be a JSON object");
  JsonFields fields(value.get_object());
  OpenAiRequest request;
  if (auto error = refuse_unsupported(value.get_object(), read == read_chat)) return *error;
  request.unknown_fields = unknown_fields(value.get_object());
  read(fields, request);
  if (fields.error()) return *fields.error();
  return request;
}

}  // namespace

Result<OpenAiRequest> parse_completion_request(std::string_view body) {
  return parse(body, read_completion);
}

Result<OpenAiRequest> parse_chat_request(std::string_view body) {
  return parse(body, read_chat);
}

}  // namespace quire::server
