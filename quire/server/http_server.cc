#include "quire/server/http_server.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "quire/base/error.h"
#include "quire/base/log.h"
#include "quire/server/http_session.h"

namespace quire::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

tcp::acceptor listen_on(asio::io_context& io, const std::string& host, uint16_t port) {
  const std::string where = fmt::format("{}:{}", host, port);
  boost::system::error_code error;
  const auto found =
      tcp::resolver(io).resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) throw LoadError("--host", "", "an address of this machine", host);
  tcp::acceptor acceptor(io);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw LoadError(where, fmt::format("cannot listen: {}", error.message()));
  return acceptor;
}

// One I/O thread with a context of its own: a connection lives on one thread, so that its coroutine
// needs no lock and never changes threads (compilers keep addresses of thread-local data over a
// suspension).
struct IoThread {
  // An exception that got this far has ended one handler; the thread goes on with the others.
  void work() {
    for (;;) {
      try {
        io.run();
        return;
      } catch (const std::exception& error) {
        log_error("an I/O handler failed: {}", error.what());
      }
    }
  }

  std::set<HttpSession*>
      sessions;  // touched on this thread only; outlives the context's coroutines
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_running{io.get_executor()};
  std::thread thread;
};

asio::awaitable<void> serve(IoThread& io_thread, std::shared_ptr<HttpSession> session) {
  const auto forget = [&](HttpSession* ended) { io_thread.sessions.erase(ended); };
  io_thread.sessions.insert(session.get());
  const std::unique_ptr<HttpSession, decltype(forget)> listed(session.get(), forget);
  co_await session->run();
}

}  // namespace

struct HttpServer::Impl {
  Impl(Options options, HttpHandler handler) {
    for (int i = 0; i < std::max(1, options.num_threads); ++i) {
      threads.push_back(std::make_unique<IoThread>());
    }
    acceptor.emplace(listen_on(threads[0]->io, options.host, options.port));
    port = acceptor->local_endpoint().port();
    context->options = std::move(options);
    context->handler = std::move(handler);
  }

  asio::awaitable<void> accept_loop() {
    for (size_t next = 0; acceptor->is_open(); next = (next + 1) % threads.size()) {
      tcp::socket socket(threads[next]->io);
      const auto [error] = co_await acceptor->async_accept(socket, kAwait);
      if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor)
        co_return;
      if (!error) {
        admit(*threads[next], std::move(socket));
        continue;
      }
      // Out of descriptors, most likely: let some close.
      asio::steady_timer pause(threads[0]->io, std::chrono::milliseconds(50));
      co_await pause.async_wait(kAwait);
    }
  }

  // A connection too many, or one there is no memory for, is closed by the socket's destructor.
  void admit(IoThread& io_thread, tcp::socket socket) {
    try {
      boost::system::error_code gone;
      const tcp::endpoint peer = socket.remote_endpoint(gone);
      if (gone) return;
      const std::string address = peer.address().to_string();
      if (!context->enter(address)) return;
      std::shared_ptr<HttpSession> session;
      try {
        session = std::make_shared<HttpSession>(std::move(socket), address, context);
      } catch (...) {
        context->leave(address);
        throw;
      }
      asio::co_spawn(session->executor(), serve(io_thread, session), asio::detached);
    } catch (const std::exception& error) {
      log_error("a connection was dropped: {}", error.what());
    }
  }

  std::shared_ptr<SessionContext> context = std::make_shared<SessionContext>();
  std::vector<std::unique_ptr<IoThread>> threads;
  std::optional<tcp::acceptor> acceptor;  // used on the first thread alone
  uint16_t port = 0;
};

HttpServer::HttpServer(Options options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() {
  stop();
}

uint16_t HttpServer::port() const {
  return impl_->port;
}

void HttpServer::start() {
  asio::co_spawn(impl_->threads[0]->io, impl_->accept_loop(), asio::detached);
  for (const auto& io_thread : impl_->threads) {
    io_thread->thread = std::thread([&loop = *io_thread] { loop.work(); });
  }
}

void HttpServer::drain() {
  impl_->context->draining = true;
  asio::post(impl_->threads[0]->io, [this] {
    boost::system::error_code ignored;
    impl_->acceptor->close(ignored);
  });
  for (const auto& io_thread : impl_->threads) {
    asio::post(io_thread->io, [&sessions = io_thread->sessions] {
      for (HttpSession* session : sessions) session->close_if_idle();
    });
  }
}

int HttpServer::num_active() const {
  return impl_->context->num_active;
}

void HttpServer::stop() {
  for (const auto& io_thread : impl_->threads) io_thread->io.stop();
  for (const auto& io_thread : impl_->threads) {
    if (io_thread->thread.joinable()) io_thread->thread.join();
  }
}

}  // namespace quire::server
