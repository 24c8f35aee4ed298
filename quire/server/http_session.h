// HttpSession: one connection: reads requests one after another, writes what handlers queue,
// notices a client that left.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "quire/server/http.h"
#include "quire/server/http_server.h"

namespace quire::server {

/// What all sessions of a server share.
struct SessionContext {
  HttpServer::Options options;
  HttpHandler handler;
  std::atomic<int> num_connections{0};
  std::atomic<int> num_active{0};
  std::atomic<bool> draining{false};

  /// Counts a connection in; false where the server or the address has as many as it may.
  bool enter(const std::string& address);
  void leave(const std::string& address);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, int> by_address_;
};

class HttpSession : public ResponseWriter, public std::enable_shared_from_this<HttpSession> {
 public:
  /// `address` was counted in by context->enter(); the destructor counts it out.
  HttpSession(boost::asio::ip::tcp::socket socket, std::string address,
              std::shared_ptr<SessionContext> context);
  ~HttpSession() override;

  /// Serves the connection until it ends; spawned on the socket's I/O thread.
  boost::asio::awaitable<void> run();
  boost::asio::any_io_executor executor() { return stream_.get_executor(); }
  /// Closes the socket if no exchange is under way. On the session's thread.
  void close_if_idle();

  void send(HttpResponse response) override;
  void begin_stream(HttpResponse head) override;
  void write(std::string bytes) override;
  void end_stream() override;
  void post(std::function<void()> work) override;
  void on_disconnect(std::function<void()> callback) override;
  bool is_open() const override { return open_; }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  boost::asio::awaitable<bool> read_request(Parser& parser);
  /// One exchange's marks, taken back however it ends: also when its coroutine is destroyed with
  /// the server. Dropping the disconnect callback frees what the handler made for the exchange.
  struct ExchangeScope {
    explicit ExchangeScope(HttpSession& owner);
    ~ExchangeScope();
    ExchangeScope(const ExchangeScope&) = delete;
    ExchangeScope& operator=(const ExchangeScope&) = delete;
    HttpSession& session;
  };

  boost::asio::awaitable<bool> wait_first_byte();
  boost::asio::awaitable<void> refuse(boost::system::error_code error);
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<void> exchange(Parser::value_type message);
  boost::asio::awaitable<void> write_response();
  boost::asio::awaitable<void> watch_client();
  boost::asio::awaitable<bool> send_bytes(std::string bytes);
  void guarded(const std::function<void()>& work);
  void failed(const char* what);
  void client_left();
  void drop();
  void enqueue(std::string bytes);
  void count_memory();
  void wake();

  std::shared_ptr<SessionContext> context_;
  std::string address_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer signal_;  // never expires; cancelled to wake the writer
  boost::beast::flat_buffer buffer_;
  LedgerEntry memory_;
  size_t body_bytes_ = 0;          // of the request being read or handled
  std::deque<std::string> queue_;  // bytes ready for the wire
  size_t queued_bytes_ = 0;
  size_t sending_bytes_ = 0;
  std::function<void()> disconnected_;
  std::string idle_bytes_;
  bool open_ = true;
  bool busy_ = false;
  bool first_ = true;  // no request has come yet
  bool keep_alive_ = true;
  bool head_only_ = false;  // the answer to HEAD has no body
  bool may_chunk_ = true;   // HTTP/1.0 knows no chunks: a stream ends with the connection
  bool streaming_ = false;
  bool answered_ = false;
  bool complete_ = false;  // the response is whole once the queue is empty
  bool written_ = false;   // the whole response went out
};

}  // namespace quire::server
