#include <unistd.h>
#include <csignal>
#include <ctime>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "quire/apps/commands.h"
#include "quire/apps/config_file.h"
#include "quire/apps/model_options.h"
#include "quire/base/log.h"
#include "quire/server/error_response.h"
#include "quire/server/http_server.h"
#include "quire/server/metrics.h"
#include "quire/server/service.h"
#include "quire/server/stats_log.h"

namespace quire::apps {
namespace {

using namespace std::chrono_literals;

struct ServeOptions {
  ModelOptions model;
  server::HttpServer::Options http;
  server::Service::Options service;
  int shutdown_timeout_s = 30;
  bool disable_log_stats = false;
  // Accepted so that existing scripts start; they change nothing here.
  bool enforce_eager = false;
  bool trust_remote_code = false;
  bool disable_log_requests = false;
};

void add_server_options(CLI::App& command, ServeOptions& options) {
  command.add_option("--host", options.http.host, "address to listen on")->capture_default_str();
  command.add_option("--port", options.http.port, "port to listen on")->capture_default_str();
  command.add_option("--api-key", options.service.api_keys,
                     "keys that clients must give one of (Authorization: Bearer)");
  command.add_option("--served-model-name", options.service.served_names,
                     "names the API knows the model by; the first is shown");
  command
      .add_option("--allowed-origins", options.service.allowed_origins,
                  "origins that browsers may call from")
      ->capture_default_str();
  command.add_option("--max-body-bytes", options.http.max_body_bytes, "largest request body")
      ->capture_default_str();
  command
      .add_option("--max-waiting-requests", options.model.llm.max_waiting_requests,
                  "requests that may wait; more get status 429")
      ->capture_default_str();
  command
      .add_option("--shutdown-timeout", options.shutdown_timeout_s,
                  "seconds running requests get after SIGTERM")
      ->capture_default_str();
  command.add_flag("--enforce-eager", options.enforce_eager,
                   "accepted; there are no graphs on a CPU");
  command.add_flag("--trust-remote-code", options.trust_remote_code,
                   "accepted; no code is ever loaded from a model");
  command.add_flag("--disable-log-stats", options.disable_log_stats,
                   "no line of throughput and load every 10 s of activity");
  command.add_flag("--strict-fields", options.service.strict,
                   "refuse request fields that no version of the API has");
  command.add_flag("--enable-debug-endpoints", options.service.debug_endpoints,
                   "GET /debug/memory: where the bytes are; asks for the API key like every route");
  command.add_flag("--disable-log-requests,!--enable-log-requests", options.disable_log_requests,
                   "accepted; prompts are never logged");
}

// Signals are taken by the main thread alone, by waiting for them.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return set;
}

void leave_at_once() {
  std::fputs("\nquire: second signal, leaving at once\n", stderr);
  _exit(130);
}

// New requests get 503, running ones end (or are aborted after the timeout); a second signal ends
// the process.
void shut_down(const sigset_t& signals, int timeout_s, server::Service& service, llm::LLM& llm,
               server::HttpServer& http) {
  log_info("draining: {} exchanges under way, at most {} s; a second signal leaves at once",
           http.num_active(), timeout_s);
  service.drain();
  std::atomic<bool> done{false};
  std::thread drainer([&] {
    if (!llm.engine().drain(std::chrono::seconds(timeout_s)))
      log_warning("requests aborted at the timeout");
    llm.engine().stop();
    http.drain();
    for (int i = 0; i < 100 && http.num_active() > 0; ++i) std::this_thread::sleep_for(20ms);
    done = true;
  });
  while (!done) {
    const timespec pause{0, 20'000'000};
    if (sigtimedwait(&signals, nullptr, &pause) > 0) leave_at_once();
  }
  drainer.join();
  http.stop();
}

void print_ready(const ServeOptions& options, const std::string& name, uint16_t port) {
  const std::string host = options.http.host == "0.0.0.0" ? "localhost" : options.http.host;
  fmt::print(stderr,
             "\nReady: http://{0}:{1}/v1 serves {2}. Try:\n\n"
             "  curl http://{0}:{1}/v1/chat/completions -H 'Content-Type: application/json' \\\n"
             "    -d '{{\"model\": \"{2}\", \"messages\": [{{\"role\": \"user\", \"content\": "
             "\"Say hello.\"}}]}}'\n\n",
             host, port, name);
}

int serve(ServeOptions& options) {
  const std::string path = resolve_model(options.model.model, options.model.quiet);
  options.model.llm.ledger = std::make_shared<MemoryLedger>();
  options.http.ledger = options.model.llm.ledger.get();
  const sigset_t signals = block_signals();
  std::atomic<server::Service*> service{nullptr};
  // Listens before the model is loaded: a taken port is known at once, and clients that come early
  // are told to wait.
  server::HttpServer http(options.http, [&](const server::HttpRequest& request,
                                            const std::shared_ptr<server::ResponseWriter>& writer) {
    if (server::Service* ready = service.load()) return ready->handle(request, writer);
    writer->send(
        server::error_response({ErrorKind::kUnavailable, "The model is being loaded.", ""}));
  });
  http.start();
  std::shared_ptr<server::Metrics> metrics;
  std::atomic<server::Metrics*> metrics_view{nullptr};
  std::atomic<server::StatsLog*> stats_log_view{nullptr};
  options.model.llm.commit_kv_cache = true;
  options.model.llm.on_step = [&](const engine::StepStats& step) {
    if (server::Metrics* view = metrics_view.load()) view->observe_step(step);
    if (server::StatsLog* view = stats_log_view.load()) view->observe_step();
  };
  const auto llm = open_model(options.model, path);
  if (options.service.served_names.empty()) {
    options.service.served_names.push_back(shown_name(options.model.model));
  }
  const llm::MemoryReport& memory = llm->memory();
  metrics = std::make_shared<server::Metrics>(
      server::Metrics::Options{.model_name = options.service.served_names.front(),
                               .max_model_len = llm->max_model_len(),
                               .block_tokens = memory.block_tokens,
                               .num_blocks = memory.num_blocks});
  metrics_view = metrics.get();
  if (!options.model.quiet) {
    fmt::print(stderr, "{}\nbackend {}\n", llm::format_report(memory), llm->backend_name());
  }
  std::unique_ptr<server::StatsLog> stats_log;
  if (!options.disable_log_stats) {
    stats_log = std::make_unique<server::StatsLog>(server::StatsLog::Options{
        .read_stats = [&llm] { return llm->engine().stats(); }, .write = {}});
    stats_log_view = stats_log.get();
  }
  server::Service api(options.service, *llm, *metrics);
  service = &api;
  print_ready(options, options.service.served_names.front(), http.port());
  int received = 0;
  sigwait(&signals, &received);
  shut_down(signals, options.shutdown_timeout_s, api, *llm, http);
  return 0;
}

}  // namespace

Action add_serve(CLI::App& command) {
  auto options = std::make_shared<ServeOptions>();
  command.add_option("model_tag", options->model.model, "the model: see --model");
  add_model_options(command, options->model);
  add_server_options(command, *options);
  add_config_option(command);
  command.footer(
      "Endpoints: /v1/chat/completions /v1/completions /v1/models /health /version /metrics\n"
      "and, with --enable-debug-endpoints, /debug/memory.\n"
      "SIGTERM (or Ctrl-C) lets running requests finish; a second one leaves at once.");
  return [options] { return serve(*options); };
}

}  // namespace quire::apps
