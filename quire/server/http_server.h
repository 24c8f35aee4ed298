// HttpServer: listens, reads requests inside limits of size and time, and hands them to one
// handler.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "quire/base/memory_ledger.h"
#include "quire/server/http.h"

namespace quire::server {

class HttpServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    uint16_t port = 8000;  // 0 = any free port
    int num_threads = 2;
    int64_t max_body_bytes = int64_t{32} << 20;
    uint32_t max_header_bytes = 32 * 1024;
    int max_connections = 4096;
    int max_connections_per_address = 2048;       // so that one client cannot take them all
    int64_t max_queued_bytes = int64_t{8} << 20;  // of a response that its client does not read
    std::chrono::seconds header_timeout{10};
    std::chrono::seconds body_timeout{60};
    std::chrono::seconds write_timeout{60};
    std::chrono::seconds keep_alive_timeout{75};
    MemoryLedger* ledger = nullptr;  // may be null; must outlive the server
  };

  /// Binds and listens; throws LoadError naming the address when it cannot.
  HttpServer(Options options, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The port in use.
  uint16_t port() const;
  /// Starts the I/O threads.
  void start();
  /// Takes no new connections and closes idle ones; exchanges under way go on and end their
  /// connection.
  void drain();
  /// Connections with an exchange under way.
  int num_active() const;
  /// Closes everything and joins the threads. Whoever may still call a ResponseWriter's post() from
  /// another thread is stopped before the server is destroyed.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::server
