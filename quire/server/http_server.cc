#include "quire/server/http_server.h"

#include <algorithm>
#include <mutex>
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

tcp::acceptor listen_on(const asio::any_io_executor& executor, const std::string& host,
                        uint16_t port) {
  const std::string where = fmt::format("{}:{}", host, port);
  boost::system::error_code error;
  const auto found =
      tcp::resolver(executor).resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) throw LoadError("--host", "", "an address of this machine", host);
  tcp::acceptor acceptor(executor);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw LoadError(where, fmt::format("cannot listen: {}", error.message()));
  return acceptor;
}

}  // namespace

struct HttpServer::Impl {
  Impl(Options options, HttpHandler handler)
      : acceptor(listen_on(io.get_executor(), options.host, options.port)),
        port(acceptor.local_endpoint().port()) {
    for (int i = 0; i < std::max(options.num_threads, 1); ++i) {
      loops.push_back(std::make_unique<Loop>());
    }
    context->options = std::move(options);
    context->handler = std::move(handler);
  }

  asio::awaitable<void> accept_loop() {
    while (acceptor.is_open()) {
      next_loop = (next_loop + 1) % loops.size();
      tcp::socket socket(loops[next_loop]->io);
      const auto [error] = co_await acceptor.async_accept(socket, kAwait);
      if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor)
        co_return;
      if (!error) {
        admit(std::move(socket));
        continue;
      }
      // Out of descriptors, most likely: let some close.
      asio::steady_timer pause(acceptor.get_executor(), std::chrono::milliseconds(50));
      co_await pause.async_wait(kAwait);
    }
  }

  // A connection too many, or one there is no memory for, is closed by the socket's destructor.
  void admit(tcp::socket socket) {
    try {
      boost::system::error_code gone;
      const tcp::endpoint peer = socket.remote_endpoint(gone);
      if (gone) return;
      std::string address = peer.address().to_string();
      if (!context->enter(address)) return;
      std::shared_ptr<HttpSession> session;
      try {
        session = std::make_shared<HttpSession>(std::move(socket), address, context);
      } catch (...) {
        context->leave(address);
        throw;
      }
      remember(session);
      // The coroutine begins later, on the connection's thread: what is spawned keeps the session.
      asio::co_spawn(
          session->executor(), [session]() { return session->run(); }, asio::detached);
    } catch (const std::exception& error) {
      log_error("a connection was dropped: {}", error.what());
    }
  }

  void remember(const std::shared_ptr<HttpSession>& session) {
    const std::lock_guard lock(mutex);
    std::erase_if(sessions, [](const auto& weak) { return weak.expired(); });
    sessions.push_back(session);
  }

  // An exception that got this far has ended one handler; the thread goes on with the others.
  static void work(asio::io_context& context) {
    for (;;) {
      try {
        context.run();
        return;
      } catch (const std::exception& error) {
        log_error("an I/O handler failed: {}", error.what());
      }
    }
  }

  /// A connection stays on one thread: no locks inside it, and its coroutine is never resumed on
  /// another thread than it was suspended on (compilers keep addresses of thread-local variables
  /// across a suspension).
  struct Loop {
    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> guard{io.get_executor()};
  };
  std::vector<std::unique_ptr<Loop>> loops;
  size_t next_loop = 0;
  // Accepting has a thread of its own. It ends before the loops: it holds a socket of theirs.
  asio::io_context io;
  tcp::acceptor acceptor;
  const uint16_t port;
  std::shared_ptr<SessionContext> context = std::make_shared<SessionContext>();
  std::mutex mutex;
  std::vector<std::weak_ptr<HttpSession>> sessions;
  std::vector<std::thread> threads;
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
  asio::co_spawn(impl_->acceptor.get_executor(), impl_->accept_loop(), asio::detached);
  impl_->threads.emplace_back([this] { Impl::work(impl_->io); });
  for (const auto& loop : impl_->loops) {
    impl_->threads.emplace_back([&loop] { Impl::work(loop->io); });
  }
}

void HttpServer::drain() {
  impl_->context->draining = true;
  asio::post(impl_->acceptor.get_executor(), [this] {
    boost::system::error_code ignored;
    impl_->acceptor.close(ignored);
  });
  const std::lock_guard lock(impl_->mutex);
  for (const auto& weak : impl_->sessions) {
    if (const auto session = weak.lock()) session->close_if_idle();
  }
}

int HttpServer::num_active() const {
  return impl_->context->num_active;
}

void HttpServer::stop() {
  impl_->io.stop();
  for (const auto& loop : impl_->loops) loop->io.stop();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

}  // namespace quire::server
