#include "quire/server/service.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/server/error_response.h"
#include "quire/server/generation.h"
#include "quire/server/openai_request.h"

namespace quire::server {
namespace {

namespace json = boost::json;
using Writer = std::shared_ptr<ResponseWriter>;

std::string random_hex(int digits) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  std::string text;
  while (static_cast<int>(text.size()) < digits) text += fmt::format("{:016x}", generator());
  text.resize(static_cast<size_t>(digits));
  return text;
}

// What a client may put into a header or an id that comes back: no way to forge lines.
bool is_safe_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

// Compares in a time that depends on the lengths only.
bool same_key(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

const std::vector<Service::Route>& Service::routes() {
  static const std::vector<Route> table = {
      {"GET", "/health", true, false, &Service::health},
      {"GET", "/ping", true, false, &Service::health},
      {"GET", "/version", true, false, &Service::version},
      {"GET", "/metrics", true, false, &Service::metrics},
      {"GET", "/v1/models", false, false, &Service::models},
      {"GET", "/debug/memory", false, true, &Service::debug_memory},
      {"POST", "/v1/completions", false, false, &Service::completions},
      {"POST", "/v1/chat/completions", false, false, &Service::chat_completions},
  };
  return table;
}

Service::Service(Options options, llm::LLM& llm, Metrics& metrics)
    : options_(std::move(options)), llm_(&llm), metrics_(&metrics), started_(std::time(nullptr)) {
  if (!llm.has_tokenizer()) {
    throw LoadError("--tokenizer", "the model has none of its own, and the API speaks in text");
  }
}

void Service::handle(const HttpRequest& request, const Writer& writer) {
  if (request.method == "OPTIONS") return preflight(request, writer);
  const std::string_view asked = request.method;
  const std::string_view method = asked == "HEAD" ? "GET" : asked;
  const Route* found = nullptr;
  std::string allowed;
  for (const Route& route : routes()) {
    if (route.path != request.path || (route.debug && !options_.debug_endpoints)) continue;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", route.method);
    if (route.method == "GET") allowed += ", HEAD";
    if (route.method == method) found = &route;
  }
  if (found != nullptr) {
    if (found->open || authorised(request)) return (this->*found->handler)(request, writer);
    return fail(request, writer,
                {ErrorKind::kUnauthorized, "The API key is missing or wrong.", ""});
  }
  if (allowed.empty()) {
    return fail(request, writer, {ErrorKind::kNotFound, "There is nothing at this path.", ""});
  }
  HttpResponse response =
      error_response(invalid(fmt::format("The method here is {}.", allowed)), 405);
  response.headers = common_headers(request);
  response.headers.emplace_back("Allow", allowed);
  writer->send(std::move(response));
}

// Browsers ask first. "*" covers no Authorization header, so that is named.
void Service::preflight(const HttpRequest& request, const Writer& writer) const {
  HttpResponse response;
  response.status = 204;
  response.headers = common_headers(request);
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, *");
  writer->send(std::move(response));
}

bool Service::authorised(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  std::string_view given = request.header("authorization");
  constexpr std::string_view kBearer = "bearer ";  // a scheme's case does not count
  const bool is_bearer =
      given.size() > kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), given.begin(),
                 [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  if (!is_bearer) return false;
  given.remove_prefix(kBearer.size());
  bool known = false;
  for (const std::string& key : options_.api_keys) known = same_key(key, given) || known;
  return known;
}

std::vector<std::pair<std::string, std::string>> Service::common_headers(
    const HttpRequest& request) const {
  std::vector<std::pair<std::string, std::string>> headers;
  if (const std::string_view id = request.header("x-request-id"); is_safe_id(id)) {
    headers.emplace_back("X-Request-Id", std::string(id));
  }
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return headers;
  for (const std::string& allowed : options_.allowed_origins) {
    if (allowed == "*" || allowed == origin) {
      headers.emplace_back("Access-Control-Allow-Origin", allowed);
      if (allowed != "*") headers.emplace_back("Vary", "Origin");
      break;
    }
  }
  return headers;
}

void Service::fail(const HttpRequest& request, const Writer& writer, const Error& error) const {
  HttpResponse response = error_response(error);
  for (auto& header : common_headers(request)) response.headers.push_back(std::move(header));
  writer->send(std::move(response));
}

void Service::health(const HttpRequest& request, const Writer& writer) {
  if (draining_ || llm_->engine().state() != engine::Engine::State::kRunning) {
    return fail(request, writer, {ErrorKind::kUnavailable, "The engine takes no requests.", ""});
  }
  writer->send({.status = 200,
                .body = "",
                .content_type = "text/plain",
                .headers = common_headers(request),
                .idle_bytes = ""});
}

void Service::version(const HttpRequest& request, const Writer& writer) {
  writer->send({.status = 200,
                .body = json::serialize(json::object{{"version", QUIRE_VERSION}}),
                .headers = common_headers(request),
                .idle_bytes = ""});
}

void Service::metrics(const HttpRequest& request, const Writer& writer) {
  writer->send({.status = 200,
                .body = metrics_->scrape(llm_->engine().stats()),
                .content_type = "text/plain; version=0.0.4; charset=utf-8",
                .headers = common_headers(request),
                .idle_bytes = ""});
}

void Service::models(const HttpRequest& request, const Writer& writer) {
  json::array list;
  for (const std::string& name : options_.served_names) {
    list.push_back(json::object{{"id", name},
                                {"object", "model"},
                                {"created", started_},
                                {"owned_by", "quire"},
                                {"root", options_.served_names.front()},
                                {"parent", nullptr},
                                {"max_model_len", llm_->max_model_len()}});
  }
  writer->send(
      {.status = 200,
       .body = json::serialize(json::object{{"object", "list"}, {"data", std::move(list)}}),
       .headers = common_headers(request),
       .idle_bytes = ""});
}

void Service::completions(const HttpRequest& request, const Writer& writer) {
  generate(request, writer, false);
}

void Service::chat_completions(const HttpRequest& request, const Writer& writer) {
  generate(request, writer, true);
}

namespace {

// Text to ids: chat through the model's template, completions as they are.
Result<std::vector<Generation::Prompt>> make_prompts(const llm::LLM& llm, OpenAiRequest& request) {
  std::vector<Generation::Prompt> prompts;
  const auto add = [&](std::string text, std::vector<int32_t> ids) -> std::optional<Error> {
    auto made = llm.make_request(std::move(ids), request.params);
    if (!made.ok()) return made.error();
    prompts.push_back({std::move(text), std::move(made).value()});
    return std::nullopt;
  };
  if (request.chat) {
    auto prompt =
        llm.chat_prompt(std::move(request.template_variables), request.add_special_tokens);
    if (!prompt.ok()) return prompt.error();
    if (auto error = add(std::move(prompt->text), std::move(prompt->ids))) return *error;
    return prompts;
  }
  for (auto& prompt : request.prompts) {
    std::optional<Error> error;
    if (auto* text = std::get_if<std::string>(&prompt)) {
      auto ids = llm.tokenizer().encode(*text, request.add_special_tokens);
      error = add(std::move(*text), std::move(ids));
    } else {
      error = add("", std::move(std::get<std::vector<int32_t>>(prompt)));
    }
    if (error) return *error;
  }
  return prompts;
}

}  // namespace

void Service::generate(const HttpRequest& http, const Writer& writer, bool chat) {
  if (draining_)
    return fail(http, writer, {ErrorKind::kUnavailable, "The server is shutting down.", ""});
  const auto arrival = engine::Clock::now();
  auto parsed = chat ? parse_chat_request(http.body) : parse_completion_request(http.body);
  if (!parsed.ok()) return fail(http, writer, parsed.error());
  OpenAiRequest request = std::move(parsed).value();
  const auto& names = options_.served_names;
  if (request.model && std::find(names.begin(), names.end(), *request.model) == names.end()) {
    return fail(http, writer,
                {ErrorKind::kNotFound,
                 fmt::format("The model `{}` does not exist.", *request.model), "model"});
  }
  if (!request.unknown_fields.empty() && options_.strict) {
    return fail(http, writer,
                invalid("this field is not known: " + request.unknown_fields.front(),
                        request.unknown_fields.front()));
  }
  for (const std::string& name : request.unknown_fields) unknown_fields_.note(name);
  auto prompts = make_prompts(*llm_, request);
  if (!prompts.ok()) return fail(http, writer, prompts.error());
  for (Generation::Prompt& prompt : prompts.value()) {
    prompt.request.arrival = arrival;
    metrics_->observe_request(prompt.request.n, prompt.request.sampling.max_tokens);
  }

  ResponseIdentity identity;
  const std::string id = is_safe_id(request.request_id) ? request.request_id : random_hex(32);
  identity.id = (chat ? "chatcmpl-" : "cmpl-") + id;
  identity.created = std::time(nullptr);
  identity.model = request.model.value_or(names.front());
  identity.chat = chat;
  Generation::Observer observer;
  observer.on_event = [this, arrival](const engine::OutputEvent& event, bool first,
                                      engine::Clock::duration gap) {
    metrics_->observe_event(event, first, gap, arrival);
  };
  const auto generation =
      std::make_shared<Generation>(std::move(request), std::move(identity), llm_->tokenizer(),
                                   std::move(observer), common_headers(http), writer);
  generation->start(llm_->engine(), std::move(prompts).value());
}

}  // namespace quire::server
