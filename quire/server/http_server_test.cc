#include "quire/server/http_server.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "quire/server/server_test_kit.h"

namespace quire::server {
namespace {

using namespace std::chrono_literals;

using Client = HttpClient;

HttpServer::Options loopback() {
  HttpServer::Options options;
  options.host = "127.0.0.1";
  options.port = 0;
  options.header_timeout = 1s;
  options.max_body_bytes = 1000;
  return options;
}

void echo(HttpRequest request, std::shared_ptr<ResponseWriter> writer) {
  writer->send({.status = 200,
                .body = request.method + " " + request.path + " " + request.body,
                .headers = {},
                .idle_bytes = ""});
}

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
  HttpServer server(loopback(), echo);
  server.start();
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send_text("POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_NE(client.read_until("hi").find("POST /a hi"), std::string::npos);
  }
  client.send_text(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");  // pipelined
  EXPECT_NE(client.read_until("/2").find("GET /1"), std::string::npos);
}

TEST(HttpServer, LimitsOnBodyHeadersAndProtocolHaveTheirStatus) {
  HttpServer server(loopback(), echo);
  server.start();
  const auto first_line = [&](const std::string& text) {
    Client client(server.port());
    client.send_text(text);
    return client.read_until("\r\n").substr(0, 12);
  };
  EXPECT_EQ(first_line("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(first_line("GET / HTTP/1.1\r\nA: " + std::string(40000, 'a') + "\r\n\r\n"),
            "HTTP/1.1 431");
  EXPECT_EQ(first_line("nonsense\r\n\r\n"), "HTTP/1.1 400");
}

TEST(HttpServer, HeadersThatNeverEndAreCutOffAtTheDeadline) {
  HttpServer server(loopback(), echo);
  server.start();
  Client client(server.port());
  client.send_text("GET / HTTP/1.1\r\nHost:");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(client.read_until("never"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);  // the client itself would wait 5
}

TEST(HttpServer, StreamsChunksAndKeepsTheConnection) {
  HttpServer server(loopback(), [](HttpRequest, const std::shared_ptr<ResponseWriter>& writer) {
    writer->begin_stream({.status = 200,
                          .body = "",
                          .content_type = "text/event-stream",
                          .headers = {},
                          .idle_bytes = ""});
    std::thread([writer] {
      for (int i = 0; i < 3; ++i)
        writer->post([writer, i] { writer->write("data: " + std::to_string(i) + "\n\n"); });
      writer->post([writer] { writer->end_stream(); });
    }).detach();
  });
  server.start();
  Client client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.send_text("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string text = client.read_until("0\r\n\r\n");
    EXPECT_NE(text.find("9\r\ndata: 2\n\n\r\n"), std::string::npos) << text;
  }
}

TEST(HttpServer, ADisconnectIsToldOnceWhileTheAnswerIsPending) {
  std::atomic<int> told{0};
  std::atomic<int> asked{0};
  HttpServer server(loopback(), [&](HttpRequest, const std::shared_ptr<ResponseWriter>& writer) {
    writer->on_disconnect([&] { ++told; });
    ++asked;
  });
  server.start();
  {
    Client client(server.port());
    client.send_text("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return asked == 1; }));
    EXPECT_EQ(server.num_active(), 1);
  }
  EXPECT_TRUE(eventually([&] { return told == 1 && server.num_active() == 0; }));
}

TEST(HttpServer, AClientThatStopsReadingIsDroppedAndBlocksNobody) {
  HttpServer::Options options = loopback();
  options.max_queued_bytes = 1 << 20;
  std::atomic<bool> left{false};
  HttpServer server(options, [&](HttpRequest, const std::shared_ptr<ResponseWriter>& writer) {
    writer->on_disconnect([&] { left = true; });
    writer->begin_stream(
        {.status = 200, .body = "", .content_type = "text/plain", .headers = {}, .idle_bytes = ""});
    for (int i = 0; i < 400 && writer->is_open(); ++i) writer->write(std::string(100'000, 'x'));
  });
  server.start();
  Client client(server.port());
  client.send_text("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return left.load(); }));
}

TEST(HttpServer, DrainingLetsTheRunningExchangeEnd) {
  std::shared_ptr<ResponseWriter> pending;
  std::atomic<bool> asked{false};
  HttpServer server(loopback(), [&](HttpRequest, std::shared_ptr<ResponseWriter> writer) {
    pending = std::move(writer);
    asked = true;
  });
  server.start();
  Client idle(server.port());
  Client busy(server.port());
  busy.send_text("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return asked.load(); }));
  server.drain();
  EXPECT_EQ(idle.read_until("never"), "");  // closed
  pending->post(
      [&] { pending->send({.status = 200, .body = "done", .headers = {}, .idle_bytes = ""}); });
  EXPECT_NE(busy.read_until("done").find("Connection: close"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return server.num_active() == 0; }));
  server.stop();
  pending.reset();  // a writer must not outlive its server
}

}  // namespace
}  // namespace quire::server
