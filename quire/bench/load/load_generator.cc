#include "quire/bench/load/load_generator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "quire/base/error.h"
#include "quire/bench/load/sse_parser.h"

namespace quire::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kLongestErrorBody = 64 << 10;

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

/// What the streams of one run share.
struct Run {
  Run(const Target& to, const LoadOptions& how)
      : target(to), options(how), tls(asio::ssl::context::tls_client), slot_free(io), tick(io) {
    if (!target.tls) return;
    tls.set_default_verify_paths();
    tls.set_verify_mode(asio::ssl::verify_peer);
  }

  double now_s() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

  const Target& target;
  const LoadOptions& options;
  asio::io_context io{1};
  asio::ssl::context tls;
  tcp::resolver::results_type addresses;
  Clock::time_point start;
  asio::steady_timer slot_free;  // cancelled when a stream ends
  asio::steady_timer tick;
  int64_t num_requests = 0;
  int64_t num_running = 0;
  int64_t num_done = 0;
  int64_t num_failed = 0;
};

http::request<http::string_body> make_request(const Run& run, http::verb verb,
                                              const std::string& path, std::string body) {
  http::request<http::string_body> request(verb, run.target.path + path, 11);
  request.set(http::field::host, run.target.authority());
  request.set(http::field::user_agent, "quire-bench");
  request.set(http::field::connection, "close");
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.set(http::field::accept, "text/event-stream");
  }
  if (!run.target.api_key.empty()) {
    request.set(http::field::authorization, "Bearer " + run.target.api_key);
  }
  request.body() = std::move(body);
  request.prepare_payload();
  return request;
}

using Sink = std::function<void(unsigned status, std::string_view bytes)>;

/// Sends the request and hands the body over piece by piece. Returns what went wrong, or nothing.
template <typename Stream>
asio::awaitable<std::string> exchange(Run& run, Stream& stream,
                                      http::request<http::string_body> request, const Sink& sink) {
  beast::tcp_stream& socket = beast::get_lowest_layer(stream);
  socket.expires_after(seconds(run.options.idle_timeout_s));
  const auto [write_error, written] = co_await http::async_write(stream, request, kAwait);
  if (write_error) co_return fmt::format("cannot send: {}", write_error.message());
  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  const auto [head_error, head_size] =
      co_await http::async_read_header(stream, buffer, parser, kAwait);
  if (head_error) co_return fmt::format("no answer: {}", head_error.message());
  const unsigned status = parser.get().result_int();
  std::array<char, 16384> piece;
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    socket.expires_after(seconds(run.options.idle_timeout_s));
    const auto [error, size] = co_await http::async_read_some(stream, buffer, parser, kAwait);
    if (error && error != http::error::need_buffer) {
      co_return fmt::format("the answer broke off: {}", error.message());
    }
    sink(status, {piece.data(), piece.size() - body.size});
  }
  co_return "";
}

asio::awaitable<std::string> exchange_plain(Run& run, http::request<http::string_body> request,
                                            const Sink& sink) {
  beast::tcp_stream stream(run.io);
  stream.expires_after(seconds(run.options.idle_timeout_s));
  const auto [error, endpoint] = co_await stream.async_connect(run.addresses, kAwait);
  if (error) co_return fmt::format("cannot connect: {}", error.message());
  stream.socket().set_option(tcp::no_delay(true));
  std::string wrong = co_await exchange(run, stream, std::move(request), sink);
  co_return wrong;
}

asio::awaitable<std::string> exchange_tls(Run& run, http::request<http::string_body> request,
                                          const Sink& sink) {
  beast::ssl_stream<beast::tcp_stream> stream(run.io, run.tls);
  SSL_set_tlsext_host_name(stream.native_handle(), run.target.host.c_str());
  stream.set_verify_callback(asio::ssl::host_name_verification(run.target.host));
  beast::tcp_stream& socket = beast::get_lowest_layer(stream);
  socket.expires_after(seconds(run.options.idle_timeout_s));
  const auto [error, endpoint] = co_await socket.async_connect(run.addresses, kAwait);
  if (error) co_return fmt::format("cannot connect: {}", error.message());
  socket.socket().set_option(tcp::no_delay(true));
  const auto [failed] = co_await stream.async_handshake(asio::ssl::stream_base::client, kAwait);
  if (failed) co_return fmt::format("no TLS: {}", failed.message());
  std::string wrong = co_await exchange(run, stream, std::move(request), sink);
  co_return wrong;
}

asio::awaitable<std::string> exchange_any(Run& run, http::request<http::string_body> request,
                                          const Sink& sink) {
  std::string wrong;
  if (run.target.tls) {
    wrong = co_await exchange_tls(run, std::move(request), sink);
  } else {
    wrong = co_await exchange_plain(run, std::move(request), sink);
  }
  co_return wrong;
}

asio::awaitable<void> stream_one(Run& run, const LoadRequest& request, StreamRecord& record) {
  SseParser parser;
  StreamReader reader;
  std::vector<std::string> events;
  std::string refusal;
  record.sent_s = run.now_s();
  const Sink sink = [&](unsigned status, std::string_view bytes) {
    if (status != 200) {
      if (refusal.empty()) refusal = fmt::format("status {}: ", status);
      refusal += bytes.substr(0, kLongestErrorBody - std::min(refusal.size(), kLongestErrorBody));
      return;
    }
    const double now_s = run.now_s();
    events.clear();
    parser.feed(bytes, events);
    for (const std::string& data : events) reader.take(data, now_s, record);
  };
  std::string wrong = co_await exchange_any(
      run, make_request(run, http::verb::post, run.options.endpoint, request.body), sink);
  record.done_s = run.now_s();
  if (!refusal.empty()) wrong = std::move(refusal);
  if (!wrong.empty()) record.error = std::move(wrong);
  reader.finish(record);
  --run.num_running;
  ++run.num_done;
  if (!record.ok()) ++run.num_failed;
  run.slot_free.cancel();
  if (run.num_done == run.num_requests) run.tick.cancel();
}

asio::awaitable<void> send_all(Run& run, std::span<const LoadRequest> requests,
                               std::vector<StreamRecord>& records) {
  asio::steady_timer arrival(run.io);
  for (size_t i = 0; i < requests.size(); ++i) {
    arrival.expires_at(run.start + seconds(requests[i].arrival_s));
    co_await arrival.async_wait(kAwait);
    while (run.options.max_concurrency > 0 && run.num_running >= run.options.max_concurrency) {
      run.slot_free.expires_at(Clock::time_point::max());
      co_await run.slot_free.async_wait(kAwait);
    }
    ++run.num_running;
    asio::co_spawn(run.io, stream_one(run, requests[i], records[i]), asio::detached);
  }
}

asio::awaitable<void> report(Run& run) {
  while (run.num_done < run.num_requests) {
    run.options.on_progress(run.num_done, run.num_running, run.num_failed, run.now_s());
    run.tick.expires_after(std::chrono::milliseconds(500));
    co_await run.tick.async_wait(kAwait);
  }
  run.options.on_progress(run.num_done, run.num_running, run.num_failed, run.now_s());
}

void resolve(Run& run) {
  boost::system::error_code error;
  run.addresses = tcp::resolver(run.io).resolve(run.target.host, run.target.port, error);
  if (error || run.addresses.empty()) {
    throw LoadError("--base-url", fmt::format("{}: {}", run.target.host, error.message()));
  }
}

}  // namespace

std::vector<StreamRecord> run_load(const Target& target, std::span<const LoadRequest> requests,
                                   const LoadOptions& options) {
  Run run(target, options);
  resolve(run);
  run.num_requests = static_cast<int64_t>(requests.size());
  std::vector<StreamRecord> records(requests.size());
  run.start = Clock::now();
  asio::co_spawn(run.io, send_all(run, requests, records), asio::detached);
  if (options.on_progress) {
    asio::co_spawn(run.io, report(run), asio::detached);
  }
  run.io.run();
  return records;
}

std::string fetch(const Target& target, const std::string& path) {
  const LoadOptions options{.idle_timeout_s = 30};
  Run run(target, options);
  resolve(run);
  unsigned status = 0;
  std::string body;
  std::string wrong;
  const Sink sink = [&](unsigned code, std::string_view bytes) {
    status = code;
    body += bytes;
  };
  const auto get = [&]() -> asio::awaitable<void> {
    wrong = co_await exchange_any(run, make_request(run, http::verb::get, path, ""), sink);
  };
  asio::co_spawn(run.io, get(), asio::detached);
  run.io.run();
  if (wrong.empty() && status != 200) wrong = fmt::format("status {}: {}", status, body);
  if (!wrong.empty()) throw LoadError(target.authority() + target.path + path, wrong);
  return body;
}

}  // namespace quire::bench
