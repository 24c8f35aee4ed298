#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "quire/server/http_server.h"
#include "quire/server/server_test_kit.h"

namespace quire::server {
namespace {

using namespace std::chrono_literals;
using Writer = std::shared_ptr<ResponseWriter>;

HttpServer::Options loopback() {
  HttpServer::Options options;
  options.host = "127.0.0.1";
  options.port = 0;
  options.header_timeout = 1s;
  options.max_body_bytes = 1000;
  return options;
}

HttpResponse text(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  response.content_type = "text/plain";
  return response;
}

void answer(const HttpRequest& request, const Writer& writer) {
  writer->send(text(request.method + " " + request.body));
}

TEST(HttpFaults, AHandlerThatThrowsIs500AndTheServerLives) {
  HttpServer server(loopback(), [](const HttpRequest& request, const Writer& writer) {
    if (request.path == "/throw") throw std::bad_alloc();
    answer(request, writer);
  });
  server.start();
  HttpClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    const Reply reply = client.request("GET", "/throw");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(reply.json().at("error").at("type").as_string(), "internal_server_error");
    EXPECT_EQ(reply.body.find("bad_alloc"), std::string::npos);
    EXPECT_EQ(client.request("GET", "/").status, 200);
  }
  EXPECT_TRUE(eventually([&] { return server.num_active() == 0; }));
}

TEST(HttpFaults, WorkThatThrowsEndsItsOwnExchangeOnly) {
  std::atomic<int> told{0};
  HttpServer server(loopback(), [&](const HttpRequest& request, const Writer& writer) {
    writer->on_disconnect([&] { ++told; });
    if (request.path == "/stream") writer->begin_stream(text(""));
    std::thread([writer] { writer->post([] { throw std::bad_alloc(); }); }).detach();
  });
  server.start();
  HttpClient before(server.port());
  EXPECT_EQ(before.request("GET", "/whole").status, 500);
  HttpClient within(server.port());
  within.send_request("GET", "/stream");
  EXPECT_EQ(within.read_to_end().find("\r\n0\r\n"), std::string::npos);  // cut off, not ended
  EXPECT_TRUE(eventually([&] { return told == 2 && server.num_active() == 0; }));
}

TEST(HttpFaults, AnswersThatMayHaveNoBodyHaveNone) {
  HttpServer server(loopback(), [](const HttpRequest& request, const Writer& writer) {
    if (request.method == "OPTIONS") {
      HttpResponse nothing = text("");
      nothing.status = 204;
      return writer->send(std::move(nothing));
    }
    answer(request, writer);
  });
  server.start();
  HttpClient client(server.port());
  client.send_request("HEAD", "/");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 5\r\n"), std::string::npos);  // of "HEAD "
  client.send_request("OPTIONS", "/");
  EXPECT_EQ(client.read_until("\r\n\r\n").find("Content-Length"), std::string::npos);
  EXPECT_EQ(client.request("GET", "/").body, "GET ");  // still in step
}

TEST(HttpFaults, HeadOfAStreamIsItsHeadAlone) {
  HttpServer server(loopback(), [](const HttpRequest&, const Writer& writer) {
    writer->begin_stream(text(""));
    writer->write("abc");
    writer->end_stream();
  });
  server.start();
  HttpClient client(server.port());
  client.send_request("HEAD", "/");
  client.read_until("\r\n\r\n");
  const Reply next = client.request("GET", "/");
  EXPECT_EQ(next.status, 200);
  EXPECT_EQ(next.body, "abc");
}

TEST(HttpFaults, OldClientsGetStreamsWithoutChunks) {
  HttpServer server(loopback(), [](const HttpRequest&, const Writer& writer) {
    writer->begin_stream(text(""));
    writer->write("abc");
    writer->write("def");
    writer->end_stream();
  });
  server.start();
  HttpClient client(server.port());
  client.send_text("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string all = client.read_to_end();
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_EQ(all.substr(all.find("\r\n\r\n") + 4), "abcdef");
}

TEST(HttpFaults, EmptyAndAbsentBodiesAreTheSame) {
  HttpServer server(loopback(), answer);
  server.start();
  HttpClient client(server.port());
  EXPECT_EQ(client.request("POST", "/", "").body, "POST ");
  client.send_text("POST / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_reply().body, "POST ");
  client.send_text("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_reply().body, "POST ");
}

TEST(HttpFaults, ChunkedBodiesAreReadWithinTheLimit) {
  HttpServer server(loopback(), answer);
  server.start();
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  HttpClient fits(server.port());
  fits.send_text(head + "2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n");
  EXPECT_EQ(fits.read_reply().body, "POST abc");
  HttpClient over(server.port());
  std::string chunks = head;
  for (int i = 0; i < 11; ++i) chunks += "64\r\n" + std::string(100, 'x') + "\r\n";
  over.send_text(chunks);
  EXPECT_EQ(over.read_reply().status, 413);
  EXPECT_EQ(over.read_to_end(), "");  // and the connection ends
}

// The client is still sending when it is refused: the answer must arrive, not a reset.
TEST(HttpFaults, ARefusedUploadHearsWhy) {
  HttpServer server(loopback(), answer);
  server.start();
  const std::string body(4 << 20, 'x');
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(HttpClient(server.port()).request("POST", "/", body).status, 413);
  }
}

TEST(HttpFaults, TwoLengthsAreRefused) {
  HttpServer server(loopback(), answer);
  server.start();
  for (const char* headers :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n"}) {
    HttpClient client(server.port());
    client.send_text(std::string("POST / HTTP/1.1\r\nHost: x\r\n") + headers + "\r\n");
    EXPECT_EQ(client.read_reply().status, 400) << headers;
  }
}

TEST(HttpFaults, AConnectionThatSaysNothingIsClosedAtTheHeaderDeadline) {
  HttpServer server(loopback(), answer);
  server.start();
  HttpClient client(server.port());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);  // the client itself would wait 5
}

TEST(HttpFaults, ASlowlorisIsCutOffThoughItKeepsSending) {
  HttpServer server(loopback(), answer);
  server.start();
  HttpClient client(server.port());
  client.send_text("GET / HTTP/1.1\r\n");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 15; ++i) {
    client.send_text("A: b\r\n");
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
}

TEST(HttpFaults, OneAddressCannotTakeAllConnections) {
  HttpServer::Options options = loopback();
  options.max_connections_per_address = 3;
  HttpServer server(options, answer);
  server.start();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    EXPECT_EQ(clients.back()->request("GET", "/").status, 200);
  }
  EXPECT_EQ(HttpClient(server.port()).request("GET", "/").status, 0);
  clients.pop_back();
  EXPECT_TRUE(
      eventually([&] { return HttpClient(server.port()).request("GET", "/").status == 200; }));
}

// A client that leaves while its pipelined next request lies unread must not be served it.
TEST(HttpFaults, AHalfClosedClientIsGone) {
  std::atomic<int> told{0};
  std::atomic<int> asked{0};
  HttpServer server(loopback(), [&](const HttpRequest&, const Writer& writer) {
    writer->on_disconnect([&] { ++told; });
    ++asked;
  });
  server.start();
  for (int i = 0; i < 20; ++i) {
    HttpClient client(server.port());
    client.send_request("POST", "/", "abc");
    ASSERT_TRUE(eventually([&] { return asked == i + 1; }));
  }
  EXPECT_TRUE(eventually([&] { return told == 20 && server.num_active() == 0; }));
}

// What a handler made for its exchange is freed with the server, though nobody ever answered.
TEST(HttpFaults, AServerThatEndsFreesItsExchanges) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  {
    std::atomic<int> asked{0};
    HttpServer server(loopback(), [&](const HttpRequest&, const Writer& writer) {
      // A cycle, as long as the exchange lasts: connection -> callback -> connection.
      writer->on_disconnect([writer, kept = held] {});
      ++asked;
    });
    server.start();
    HttpClient client(server.port());
    client.send_request("GET", "/");
    ASSERT_TRUE(eventually([&] { return asked == 1; }));
    held.reset();
    ASSERT_FALSE(alive.expired());
    server.stop();
  }
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace quire::server
