#include "quire/server/http_session.h"

#include <sys/socket.h>

#include <cctype>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "quire/base/check.h"
#include "quire/base/log.h"

namespace quire::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// Proxies cut streams that are silent for a minute.
constexpr std::chrono::seconds kIdleInterval{15};
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

HttpRequest to_request(http::request<http::string_body>&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    request.headers.emplace_back(std::move(name), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

// The status line and headers as they go over the wire.
std::string head_bytes(const HttpResponse& response, bool keep_alive, bool chunked) {
  http::response<http::empty_body> head;
  head.version(11);
  head.result(static_cast<unsigned>(response.status));
  head.set(http::field::server, "quire");
  head.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) head.set(name, value);
  head.keep_alive(keep_alive);
  if (chunked) {
    head.chunked(true);
  } else {
    head.content_length(response.body.size());
  }
  std::ostringstream text;
  text << head.base();
  return text.str();
}

std::string error_body(int status, std::string_view message) {
  return fmt::format(
      R"({{"error":{{"message":"{}","type":"invalid_request_error","param":null,"code":{}}}}})",
      message, status);
}

}  // namespace

HttpSession::HttpSession(asio::ip::tcp::socket socket, std::shared_ptr<SessionContext> context)
    : context_(std::move(context)),
      stream_(std::move(socket)),
      signal_(stream_.get_executor(), asio::steady_timer::time_point::max()) {
  context_->num_connections.fetch_add(1);
}

HttpSession::~HttpSession() {
  context_->num_connections.fetch_sub(1);
}

asio::awaitable<void> HttpSession::run() {
  const auto self = shared_from_this();
  boost::system::error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  while (open_ && keep_alive_ && !context_->draining) {
    Parser parser;
    if (!co_await read_request(parser)) break;
    const bool keep_alive = parser.get().keep_alive();
    co_await exchange(to_request(parser.release()), keep_alive);
  }
  open_ = false;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.close();
}

asio::awaitable<bool> HttpSession::read_request(Parser& parser) {
  const HttpServer::Options& options = context_->options;
  parser.header_limit(options.max_header_bytes);
  parser.body_limit(static_cast<uint64_t>(options.max_body_bytes));
  if (buffer_.size() ==
      0) {  // idle: wait for the first byte longer than for the rest of the headers
    stream_.expires_after(options.keep_alive_timeout);
    const auto [error, count] = co_await stream_.async_read_some(buffer_.prepare(4096), kAwait);
    if (error) co_return false;
    buffer_.commit(count);
  }
  stream_.expires_after(options.header_timeout);
  auto [error, count] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
  if (!error && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    if (!co_await send_bytes("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
  }
  if (!error && !parser.is_done()) {
    stream_.expires_after(options.body_timeout);
    std::tie(error, count) = co_await http::async_read(stream_, buffer_, parser, kAwait);
  }
  stream_.expires_never();
  if (!error) co_return true;
  if (error != http::error::end_of_stream) co_await refuse(error);
  co_return false;
}

// A request that breaks a limit or the protocol gets one answer, and the connection ends. (One that
// came too slowly gets none: the stream closes its socket at the deadline.)
asio::awaitable<void> HttpSession::refuse(boost::system::error_code error) {
  HttpResponse response;
  if (error == http::error::body_limit) {
    response.status = 413;
    response.body =
        error_body(413, fmt::format("The request body is larger than the limit of {} bytes.",
                                    context_->options.max_body_bytes));
  } else if (error == http::error::header_limit) {
    response.status = 431;
    response.body =
        error_body(431, fmt::format("The request headers are larger than the limit of {} bytes.",
                                    context_->options.max_header_bytes));
  } else if (error.category() == http::make_error_code(http::error::bad_method).category()) {
    response.status = 400;
    response.body = error_body(400, "The request is not valid HTTP/1.1.");
  } else {
    co_return;  // the connection itself failed
  }
  co_await send_bytes(head_bytes(response, false, false) + response.body);
}

asio::awaitable<void> HttpSession::exchange(HttpRequest request, bool keep_alive) {
  using namespace asio::experimental::awaitable_operators;
  queue_.clear();
  queued_bytes_ = 0;
  disconnected_ = nullptr;
  idle_bytes_.clear();
  streaming_ = answered_ = complete_ = false;
  keep_alive_ = keep_alive;
  busy_ = true;
  context_->num_active.fetch_add(1);
  context_->handler(std::move(request), shared_from_this());
  co_await (write_response() || watch_client());
  if (!complete_ || !queue_.empty()) client_left();
  disconnected_ = nullptr;
  busy_ = false;
  context_->num_active.fetch_sub(1);
}

asio::awaitable<void> HttpSession::write_response() {
  while (open_) {
    if (queue_.empty()) {
      if (complete_) co_return;
      if (idle_bytes_.empty()) {
        signal_.expires_at(asio::steady_timer::time_point::max());
      } else {
        signal_.expires_after(kIdleInterval);
      }
      const auto [cancelled] = co_await signal_.async_wait(kAwait);
      if ((co_await asio::this_coro::cancellation_state).cancelled() !=
          asio::cancellation_type::none)
        co_return;
      if (!cancelled && queue_.empty() && !complete_) write(idle_bytes_);
      continue;
    }
    std::string bytes = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= bytes.size();
    if (!co_await send_bytes(std::move(bytes))) {
      open_ = false;
      co_return;
    }
  }
}

// Returns when the client has closed its side while its answer is still being made.
asio::awaitable<void> HttpSession::watch_client() {
  for (;;) {
    const auto [error] =
        co_await stream_.socket().async_wait(asio::ip::tcp::socket::wait_read, kAwait);
    if (error) co_return;
    char byte = 0;
    const ssize_t got = recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      open_ = false;
      co_return;
    }
    if (got > 0) {  // a pipelined request waits its turn; look again later for a close behind it
      asio::steady_timer pause(stream_.get_executor(), std::chrono::milliseconds(200));
      co_await pause.async_wait(kAwait);
      if ((co_await asio::this_coro::cancellation_state).cancelled() !=
          asio::cancellation_type::none)
        co_return;
    }
  }
}

asio::awaitable<bool> HttpSession::send_bytes(std::string bytes) {
  stream_.expires_after(context_->options.write_timeout);
  const auto [error, count] = co_await asio::async_write(stream_, asio::buffer(bytes), kAwait);
  stream_.expires_never();
  co_return !error;
}

void HttpSession::client_left() {
  open_ = false;
  if (const auto callback = std::exchange(disconnected_, nullptr)) callback();
}

void HttpSession::wake() {
  signal_.cancel();
}

void HttpSession::close_if_idle() {
  if (!busy_) stream_.close();
}

void HttpSession::send(HttpResponse response) {
  QUIRE_CHECK(!answered_);
  answered_ = complete_ = true;
  if (context_->draining) keep_alive_ = false;
  std::string bytes = head_bytes(response, keep_alive_, false) + response.body;
  queued_bytes_ += bytes.size();
  queue_.push_back(std::move(bytes));
  wake();
}

void HttpSession::begin_stream(HttpResponse head) {
  QUIRE_CHECK(!answered_);
  answered_ = streaming_ = true;
  idle_bytes_ = std::move(head.idle_bytes);
  if (context_->draining) keep_alive_ = false;
  std::string bytes = head_bytes(head, keep_alive_, true);
  queued_bytes_ += bytes.size();
  queue_.push_back(std::move(bytes));
  wake();
}

void HttpSession::write(std::string bytes) {
  QUIRE_CHECK(streaming_ && !complete_);
  if (bytes.empty() || !open_) return;
  std::string chunk = fmt::format("{:x}\r\n", bytes.size());
  chunk += bytes;
  chunk += "\r\n";
  queued_bytes_ += chunk.size();
  if (queued_bytes_ > static_cast<size_t>(context_->options.max_queued_bytes)) {
    log_warning("a client does not read its response: disconnected");
    open_ = false;
    stream_.socket().cancel();
    wake();
    return;
  }
  queue_.push_back(std::move(chunk));
  wake();
}

void HttpSession::end_stream() {
  QUIRE_CHECK(streaming_ && !complete_);
  complete_ = true;
  queue_.emplace_back("0\r\n\r\n");
  queued_bytes_ += 5;
  wake();
}

void HttpSession::post(std::function<void()> work) {
  asio::post(stream_.get_executor(),
             [self = shared_from_this(), work = std::move(work)] { work(); });
}

void HttpSession::on_disconnect(std::function<void()> callback) {
  if (!open_) {
    callback();
    return;
  }
  disconnected_ = std::move(callback);
}

}  // namespace quire::server
