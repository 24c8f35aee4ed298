// Service: the routes of the API over one LLM: authorises, parses, submits and answers.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quire/llm/llm.h"
#include "quire/server/http.h"
#include "quire/server/known_fields.h"
#include "quire/server/metrics.h"

namespace quire::server {

class Service {
 public:
  struct Options {
    std::vector<std::string> served_names = {};  // the first is the one shown; at least one
    std::vector<std::string> api_keys = {};      // empty: no key is asked for
    std::vector<std::string> allowed_origins = {"*"};
    bool strict = false;           // refuse unknown fields
    bool debug_endpoints = false;  // without it the debug routes are not there
  };

  /// One row of the route table.
  struct Route {
    std::string_view method;
    std::string_view path;
    bool open;   // needs no key
    bool debug;  // there only with Options::debug_endpoints
    void (Service::*handler)(const HttpRequest&, const std::shared_ptr<ResponseWriter>&);
  };
  static const std::vector<Route>& routes();

  /// `llm` and `metrics` must outlive the service. Throws LoadError when the model has no
  /// tokenizer.
  Service(Options options, llm::LLM& llm, Metrics& metrics);

  /// Answers one request; the HttpServer's handler. What it throws (out of memory) is the
  /// connection's to answer.
  void handle(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);
  /// From now on new generation requests get 503.
  void drain() { draining_ = true; }

 private:
  void health(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);
  void version(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);
  void models(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);
  void metrics(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);
  /// The memory ledger and what the system says of the process, as JSON (debug_memory.cc).
  void debug_memory(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);
  void completions(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);
  void chat_completions(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer);

  void preflight(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer) const;
  bool authorised(const HttpRequest& request) const;
  std::vector<std::pair<std::string, std::string>> common_headers(const HttpRequest& request) const;
  void fail(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer,
            const Error& error) const;
  void generate(const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer,
                bool chat);

  Options options_;
  llm::LLM* llm_;
  Metrics* metrics_;
  int64_t started_;
  std::atomic<bool> draining_{false};
  UnknownFieldLog unknown_fields_;
};

}  // namespace quire::server
