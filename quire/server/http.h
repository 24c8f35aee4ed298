// HttpRequest and ResponseWriter: one HTTP exchange as handlers see it, without any of the HTTP
// library's types.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::server {

/// One request, read whole. Header names are lower case.
struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // without the query
  std::string query;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The first header of that (lower-case) name, or empty.
  std::string_view header(std::string_view name) const;
};

/// A complete response.
struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  /// Streams only: written whenever nothing was for 15 s, so that proxies keep the connection.
  std::string idle_bytes;
};

/// The way back to one client; must not outlive its HttpServer. All calls, and the callbacks given
/// to it, run on the connection's own executor; from other threads go through post(). Exactly one
/// of send() or begin_stream()...end_stream() answers an exchange.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  virtual void send(HttpResponse response) = 0;
  /// Starts a chunked response; its body follows by write().
  virtual void begin_stream(HttpResponse head) = 0;
  /// Queues bytes; never blocks. A client that lets more than the server's limit pile up is
  /// disconnected.
  virtual void write(std::string bytes) = 0;
  virtual void end_stream() = 0;

  /// Thread-safe: runs `work` on the connection's executor, later.
  virtual void post(std::function<void()> work) = 0;
  /// Called at most once, if the client goes away before the response is complete.
  virtual void on_disconnect(std::function<void()> callback) = 0;
  virtual bool is_open() const = 0;
};

using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<ResponseWriter>)>;

}  // namespace quire::server
