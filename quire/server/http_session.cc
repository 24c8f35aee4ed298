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
#include "quire/server/error_response.h"

namespace quire::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// Proxies cut streams that are silent for a minute.
constexpr std::chrono::seconds kIdleInterval{15};
constexpr std::chrono::seconds kLingerTime{2};
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

enum class Framing { kLength, kChunks, kUntilClose };

// The status line and headers as they go over the wire.
std::string head_bytes(const HttpResponse& response, bool keep_alive, Framing framing) {
  http::response<http::empty_body> head;
  head.version(11);
  head.result(static_cast<unsigned>(response.status));
  head.set(http::field::server, "quire");
  if (response.status != 204) head.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) head.set(name, value);
  head.keep_alive(keep_alive);
  if (framing == Framing::kChunks) head.chunked(true);
  // 204 says that there is no body; a length beside it is forbidden.
  if (framing == Framing::kLength && response.status != 204) {
    head.content_length(response.body.size());
  }
  std::ostringstream text;
  text << head.base();
  return text.str();
}

}  // namespace

bool SessionContext::enter(const std::string& address) {
  if (num_connections.fetch_add(1) >= options.max_connections) {
    num_connections.fetch_sub(1);
    return false;
  }
  try {
    const std::lock_guard lock(mutex_);
    int& count = by_address_[address];
    if (count < options.max_connections_per_address) {
      ++count;
      return true;
    }
  } catch (...) {
    num_connections.fetch_sub(1);
    throw;
  }
  num_connections.fetch_sub(1);
  return false;
}

void SessionContext::leave(const std::string& address) {
  num_connections.fetch_sub(1);
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(address);
  if (found != by_address_.end() && --found->second == 0) by_address_.erase(found);
}

HttpSession::HttpSession(asio::ip::tcp::socket socket, std::string address,
                         std::shared_ptr<SessionContext> context)
    : context_(std::move(context)),
      address_(std::move(address)),
      stream_(std::move(socket)),
      signal_(stream_.get_executor(), asio::steady_timer::time_point::max()),
      memory_(context_->options.ledger, MemoryTag::kHttp, sizeof(HttpSession)) {}

HttpSession::~HttpSession() {
  context_->leave(address_);
}

HttpSession::ExchangeScope::ExchangeScope(HttpSession& owner) : session(owner) {
  session.busy_ = true;
  session.context_->num_active.fetch_add(1);
}

HttpSession::ExchangeScope::~ExchangeScope() {
  session.busy_ = false;
  session.context_->num_active.fetch_sub(1);
  const auto dropped = std::exchange(session.disconnected_, nullptr);
}

asio::awaitable<void> HttpSession::run() {
  const auto self = shared_from_this();
  boost::system::error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  while (open_ && keep_alive_ && !context_->draining) {
    Parser parser;
    if (!co_await read_request(parser)) break;
    co_await exchange(parser.release());
  }
  open_ = false;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.close();
}

// A connection that waits for its next request may wait longer than one that has sent none yet.
asio::awaitable<bool> HttpSession::wait_first_byte() {
  const HttpServer::Options& options = context_->options;
  stream_.expires_after(first_ ? options.header_timeout : options.keep_alive_timeout);
  const auto [error, count] = co_await stream_.async_read_some(buffer_.prepare(4096), kAwait);
  if (error) co_return false;
  buffer_.commit(count);
  co_return true;
}

asio::awaitable<bool> HttpSession::read_request(Parser& parser) {
  const HttpServer::Options& options = context_->options;
  parser.header_limit(options.max_header_bytes);
  parser.body_limit(static_cast<uint64_t>(options.max_body_bytes));
  if (buffer_.size() == 0 && !co_await wait_first_byte()) co_return false;
  first_ = false;
  stream_.expires_after(options.header_timeout);
  auto [error, count] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
  if (!error && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    if (!co_await send_bytes("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
  }
  if (!error && !parser.is_done()) {
    body_bytes_ = static_cast<size_t>(parser.content_length().value_or(0));
    count_memory();
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
    response = error_response({ErrorKind::kTooLarge,
                               fmt::format("The request body is larger than the limit of {} bytes.",
                                           context_->options.max_body_bytes),
                               ""});
  } else if (error == http::error::header_limit) {
    response = error_response(
        invalid(fmt::format("The request headers are larger than the limit of {} bytes.",
                            context_->options.max_header_bytes)),
        431);
  } else if (error.category() == http::make_error_code(http::error::bad_method).category()) {
    response = error_response(invalid("The request is not valid HTTP/1.1."));
  } else {
    co_return;  // the connection itself failed
  }
  if (co_await send_bytes(head_bytes(response, false, Framing::kLength) + response.body)) {
    co_await linger();
  }
}

// Closing a socket with unread bytes resets the connection, and the reset may overtake the answer:
// so what the client still sends is read for a moment.
asio::awaitable<void> HttpSession::linger() {
  boost::system::error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  stream_.expires_after(kLingerTime);
  for (;;) {
    const auto [error, count] = co_await stream_.async_read_some(buffer_.prepare(65536), kAwait);
    if (error) co_return;
  }
}

asio::awaitable<void> HttpSession::exchange(Parser::value_type message) {
  using namespace asio::experimental::awaitable_operators;
  queue_.clear();
  queued_bytes_ = sending_bytes_ = 0;
  idle_bytes_.clear();
  streaming_ = answered_ = complete_ = written_ = false;
  head_only_ = message.method() == http::verb::head;
  may_chunk_ = message.version() >= 11;
  keep_alive_ = may_chunk_ && message.keep_alive();
  const ExchangeScope scope(*this);
  guarded([&] { context_->handler(to_request(std::move(message)), shared_from_this()); });
  body_bytes_ = 0;
  count_memory();
  co_await (write_response() || watch_client());
  if (!written_) client_left();
}

asio::awaitable<void> HttpSession::write_response() {
  while (open_) {
    if (queue_.empty()) {
      if (complete_) {
        written_ = true;
        co_return;
      }
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
    sending_bytes_ = bytes.size();
    const bool fine = co_await send_bytes(std::move(bytes));
    sending_bytes_ = 0;
    count_memory();
    if (!fine) {
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
      drop();
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

// Runs what may throw (out of memory, most likely): the exchange fails, not the server.
void HttpSession::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    failed(error.what());
  }
}

void HttpSession::failed(const char* what) {
  log_error("an exchange failed: {}", what);
  if (!busy_) return;
  // Whoever was answering is done with it.
  if (const auto callback = std::exchange(disconnected_, nullptr)) callback();
  if (answered_) return drop();
  send(error_response({ErrorKind::kInternal, what, ""}));
}

void HttpSession::client_left() {
  open_ = false;
  if (const auto callback = std::exchange(disconnected_, nullptr)) callback();
}

// Ends the exchange where it stands: reads and writes under way return.
void HttpSession::drop() {
  open_ = false;
  boost::system::error_code ignored;
  stream_.socket().cancel(ignored);
  wake();
}

void HttpSession::wake() {
  signal_.cancel();
}

void HttpSession::close_if_idle() {
  if (!busy_) stream_.close();
}

/// The session itself, what was read ahead, the request's body and what waits to be sent.
void HttpSession::count_memory() {
  memory_.resize(static_cast<int64_t>(sizeof(HttpSession) + buffer_.capacity() + body_bytes_ +
                                      queued_bytes_ + sending_bytes_));
}

void HttpSession::enqueue(std::string bytes) {
  queued_bytes_ += bytes.size();
  queue_.push_back(std::move(bytes));
  count_memory();
  wake();
}

void HttpSession::send(HttpResponse response) {
  QUIRE_CHECK(!answered_);
  if (context_->draining) keep_alive_ = false;
  std::string bytes = head_bytes(response, keep_alive_, Framing::kLength);
  if (!head_only_) bytes += response.body;
  answered_ = complete_ = true;
  enqueue(std::move(bytes));
}

void HttpSession::begin_stream(HttpResponse head) {
  QUIRE_CHECK(!answered_);
  if (context_->draining) keep_alive_ = false;
  std::string bytes =
      head_bytes(head, keep_alive_, may_chunk_ ? Framing::kChunks : Framing::kUntilClose);
  answered_ = streaming_ = true;
  idle_bytes_ = std::move(head.idle_bytes);
  enqueue(std::move(bytes));
}

void HttpSession::write(std::string bytes) {
  QUIRE_CHECK(streaming_ && !complete_);
  if (bytes.empty() || head_only_ || !open_) return;
  std::string chunk =
      may_chunk_ ? fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes) : std::move(bytes);
  if (queued_bytes_ + chunk.size() > static_cast<size_t>(context_->options.max_queued_bytes)) {
    log_warning("a client does not read its response: disconnected");
    return drop();
  }
  enqueue(std::move(chunk));
}

void HttpSession::end_stream() {
  QUIRE_CHECK(streaming_ && !complete_);
  if (may_chunk_ && !head_only_) enqueue("0\r\n\r\n");
  complete_ = true;
  wake();
}

void HttpSession::post(std::function<void()> work) {
  asio::post(stream_.get_executor(),
             [self = shared_from_this(), work = std::move(work)] { self->guarded(work); });
}

void HttpSession::on_disconnect(std::function<void()> callback) {
  if (!open_) {
    callback();
    return;
  }
  disconnected_ = std::move(callback);
}

}  // namespace quire::server
