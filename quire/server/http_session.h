// HttpSession: one connection: reads requests one after another, writes what handlers queue,
// notices a client that left.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

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
};

class HttpSession : public ResponseWriter, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(boost::asio::ip::tcp::socket socket, std::shared_ptr<SessionContext> context);
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
  boost::asio::awaitable<void> refuse(boost::system::error_code error);
  boost::asio::awaitable<void> exchange(HttpRequest request, bool keep_alive);
  boost::asio::awaitable<void> write_response();
  boost::asio::awaitable<void> watch_client();
  boost::asio::awaitable<bool> send_bytes(std::string bytes);
  void client_left();
  void wake();

  std::shared_ptr<SessionContext> context_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer signal_;  // never expires; cancelled to wake the writer
  boost::beast::flat_buffer buffer_;
  std::deque<std::string> queue_;  // bytes ready for the wire
  size_t queued_bytes_ = 0;
  std::function<void()> disconnected_;
  std::string idle_bytes_;
  bool open_ = true;
  bool busy_ = false;
  bool keep_alive_ = true;
  bool streaming_ = false;
  bool answered_ = false;
  bool complete_ = false;  // the response is whole once the queue is empty
};

}  // namespace quire::server
