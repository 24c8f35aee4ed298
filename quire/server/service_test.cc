#include "quire/server/service.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "quire/base/error.h"
#include "quire/server/server_test_kit.h"

namespace quire::server {
namespace {

using namespace std::chrono_literals;

std::string error_type(const Reply& reply) {
  return std::string(reply.json().at("error").at("type").as_string());
}

TEST(Service, EveryRouteThatIsNotOpenNeedsTheKey) {
  ServerKit kit({.service = {.api_keys = {"first", "secret"}, .debug_endpoints = true}});
  ASSERT_GE(Service::routes().size(), 7U);
  int guarded = 0;
  for (const Service::Route& route : Service::routes()) {
    const std::string method(route.method);
    const std::string path(route.path);
    const auto status = [&](const std::string& headers) {
      return HttpClient(kit.http->port()).request(method, path, "", headers).status;
    };
    for (const char* headers :
         {"", "Authorization: Bearer wrong\r\n", "Authorization: secret\r\n",
          "Authorization: Bearer secretX\r\n", "Authorization: Bearer \r\n"}) {
      if (route.open) {
        EXPECT_EQ(status(headers), 200) << path;
      } else {
        EXPECT_EQ(status(headers), 401) << path << " " << headers;
      }
    }
    EXPECT_NE(status("Authorization: Bearer secret\r\n"), 401) << path;
    EXPECT_NE(status("Authorization: bearer first\r\n"), 401) << path;
    guarded += route.open ? 0 : 1;
  }
  EXPECT_EQ(guarded,
            4);  // models, completions, chat, debug: a new route is guarded or counted here
}

TEST(Service, DebugRoutesAreThereOnlyWhenAskedFor) {
  ServerKit closed({.service = {.api_keys = {"secret"}}});
  int num_debug = 0;
  for (const Service::Route& route : Service::routes()) {
    if (!route.debug) continue;
    ++num_debug;
    EXPECT_FALSE(route.open) << route.path;
    for (const char* headers : {"", "Authorization: Bearer secret\r\n"}) {
      const Reply reply =
          HttpClient(closed.http->port())
              .request(std::string(route.method), std::string(route.path), "", headers);
      EXPECT_EQ(reply.status, 404) << route.path;
    }
  }
  EXPECT_EQ(num_debug, 1);
}

TEST(Service, DebugMemoryShowsLedgerAndProcess) {
  ServerKit kit({.service = {.debug_endpoints = true}});
  const Reply reply = kit.get("/debug/memory");
  ASSERT_EQ(reply.status, 200);
  const boost::json::object ledger = reply.json().at("ledger").as_object();
  EXPECT_EQ(ledger.at("tags").as_object().size(), static_cast<size_t>(kNumMemoryTags));
  // The kit's server counts its connections in the same ledger: this one is open.
  const boost::json::value& http = ledger.at("tags").at("http");
  EXPECT_GT(http.at("current").as_int64(), 0);
  EXPECT_GE(http.at("peak").as_int64(), http.at("current").as_int64());
  EXPECT_EQ(http.at("allocated").as_int64() - http.at("freed").as_int64(),
            http.at("current").as_int64());
  EXPECT_EQ(ledger.at("total").at("current").as_int64(), http.at("current").as_int64());
  EXPECT_GT(reply.json().at("process").at("rss").as_int64(), 1 << 20);
}

TEST(Service, RequestBodiesAreCountedWhileTheyAreThere) {
  ServerKit kit;
  const auto current = [&kit] { return kit.llm->ledger().current(MemoryTag::kHttp); };
  HttpClient client(kit.http->port());
  constexpr size_t kBytes = 3 << 20;
  client.send_text("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                   std::to_string(kBytes) + "\r\n\r\n{");
  EXPECT_TRUE(eventually([&] { return current() >= static_cast<int64_t>(kBytes); }));
  client.send_text(std::string(kBytes - 1, ' '));
  EXPECT_EQ(client.read_reply().status, 400);
  EXPECT_TRUE(eventually([&] { return current() < 1 << 20; })) << current();
}

TEST(Service, ErrorsHaveTheirStatusAndShape) {
  ServerKit kit;
  const auto expect = [](const Reply& reply, int status, const std::string& type) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const boost::json::object error = reply.json().at("error").as_object();
    EXPECT_EQ(error.size(), 4U);
    EXPECT_EQ(error_type(reply), type);
    EXPECT_EQ(error.at("code").as_int64(), status);
    EXPECT_FALSE(error.at("message").as_string().empty());
    EXPECT_TRUE(error.contains("param"));
  };
  expect(kit.get("/nothing"), 404, "not_found_error");
  expect(kit.complete(R"({"prompt":"a","model":"other"})"), 404, "not_found_error");
  expect(kit.complete("{"), 400, "invalid_request_error");
  expect(kit.complete(""), 400, "invalid_request_error");
  expect(kit.complete("[]"), 400, "invalid_request_error");
  expect(kit.complete(R"({"prompt":""})"), 400, "invalid_request_error");
  expect(kit.chat(R"({"messages":[]})"), 400, "invalid_request_error");
  const Reply wrong_method = kit.get("/v1/completions");
  expect(wrong_method, 405, "invalid_request_error");
  EXPECT_TRUE(wrong_method.has_header("Allow: POST\r\n"));
  const Reply too_long = kit.complete(R"({"prompt":"abcdefgh","max_tokens":60})");
  expect(too_long, 400, "invalid_request_error");
  for (const char* number : {"64", "8", "60"}) {
    EXPECT_NE(too_long.body.find(number), std::string::npos) << too_long.body;
  }
}

TEST(Service, ConnectionsLiveOnAfterErrors) {
  ServerKit kit;
  HttpClient client(kit.http->port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.request("POST", "/v1/completions", "{").status, 400);
    EXPECT_EQ(client.request("GET", "/nothing").status, 404);
    EXPECT_EQ(client.request("POST", "/v1/completions", R"({"prompt":"a"})").status, 200);
  }
}

TEST(Service, HeadIsGetWithoutABody) {
  ServerKit kit;
  HttpClient client(kit.http->port());
  for (const char* path : {"/version", "/v1/models", "/metrics"}) {
    client.send_request("HEAD", path);
    const std::string head = client.read_until("\r\n\r\n");
    EXPECT_EQ(head.substr(9, 3), "200") << path;
    EXPECT_EQ(head.find("Content-Length: 0"), std::string::npos) << "the length GET would give";
  }
  EXPECT_EQ(client.request("GET", "/health").status, 200);  // in step with the client
}

TEST(Service, RequestIdsAreEchoedOnlyWhenHarmless) {
  ServerKit kit;
  const auto reply = [&](const std::string& headers) {
    return HttpClient(kit.http->port()).request("GET", "/health", "", headers);
  };
  EXPECT_TRUE(reply("X-Request-Id: a-b_c.d:9\r\n").has_header("X-Request-Id: a-b_c.d:9\r\n"));
  for (const std::string& id :
       {std::string("\x1b[31mred"), std::string("a b"), std::string("a\tb"), std::string(129, 'a'),
        std::string("\xc2\x9b"
                    "31m")}) {
    EXPECT_FALSE(reply("X-Request-Id: " + id + "\r\n").has_header("X-Request-Id"));
  }
  // A folded line cannot become a header of the answer.
  const Reply folded = reply("X-Request-Id: a\r\n Set-Cookie: b\r\n");
  EXPECT_FALSE(folded.has_header("Set-Cookie"));
  EXPECT_FALSE(folded.has_header("X-Request-Id"));
  // Nor can one that is written into the body's request_id.
  const Reply body = kit.complete(R"({"prompt":"a","request_id":"x\r\nSet-Cookie: b"})");
  EXPECT_EQ(body.status, 200);
  EXPECT_EQ(body.body.find("Set-Cookie"), std::string::npos);
  EXPECT_FALSE(body.has_header("Set-Cookie"));
  EXPECT_EQ(kit.complete(R"({"prompt":"a","request_id":"mine"})").json().at("id").as_string(),
            "cmpl-mine");
}

TEST(Service, BrowsersAreToldWhatTheyMay) {
  ServerKit any;
  HttpClient client(any.http->port());
  client.send_request("OPTIONS", "/v1/chat/completions", "", "Origin: http://a.example\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_EQ(head.substr(9, 3), "204");
  EXPECT_NE(head.find("Access-Control-Allow-Origin: *\r\n"), std::string::npos);
  EXPECT_NE(head.find("Authorization"), std::string::npos);
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  ServerKit one({.service = {.allowed_origins = {"http://a.example"}}});
  const auto origin = [&](const std::string& name) {
    return HttpClient(one.http->port()).request("GET", "/health", "", "Origin: " + name + "\r\n");
  };
  EXPECT_TRUE(origin("http://a.example").has_header("Vary: Origin"));
  EXPECT_FALSE(origin("http://b.example").has_header("Access-Control-Allow-Origin"));
}

TEST(Service, AFullQueueIs429WithRetryAfter) {
  ServerKit kit({.llm = {.max_num_seqs = 1, .max_waiting_requests = 1},
                 .step_time = std::chrono::milliseconds(150)});
  const std::string body = R"({"prompt":"a","max_tokens":60,"ignore_eos":true})";
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<HttpClient>(kit.http->port()));
    clients.back()->send_request("POST", "/v1/completions", body);
    std::this_thread::sleep_for(30ms);  // one runs, one waits
  }
  int refused = 0;
  for (size_t i = 2; i < clients.size(); ++i) {
    const Reply reply = clients[i]->read_reply();
    ASSERT_EQ(reply.status, 429) << reply.body;
    EXPECT_TRUE(reply.has_header("Retry-After: 1\r\n"));
    EXPECT_EQ(error_type(reply), "rate_limit_error");
    ++refused;
  }
  EXPECT_EQ(refused, 4);
  clients.clear();
  EXPECT_TRUE(kit.becomes_idle());
}

TEST(Service, DrainingRefusesNewRequestsAndLetsOldOnesEnd) {
  ServerKit kit({.step_time = std::chrono::milliseconds(10)});
  HttpClient running(kit.http->port());
  running.send_request("POST", "/v1/completions",
                       R"({"prompt":"a","max_tokens":20,"stream":true})");
  running.read_until("data: ");
  kit.service->drain();
  const Reply refused = kit.complete(R"({"prompt":"a"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has_header("Retry-After"));
  EXPECT_EQ(kit.get("/health").status, 503);
  EXPECT_EQ(kit.get("/metrics").status, 200);
  EXPECT_NE(running.read_until("[DONE]").find(R"("finish_reason":"length")"), std::string::npos);
}

TEST(Service, WhatTheShutdownCutsOffIsToldSo) {
  ServerKit kit({.step_time = std::chrono::milliseconds(10)});
  const std::string request = R"("prompt":"a","max_tokens":60,"ignore_eos":true)";
  HttpClient stream(kit.http->port());
  stream.send_request("POST", "/v1/completions", "{" + request + R"(,"stream":true})");
  stream.read_until("data: ");
  HttpClient whole(kit.http->port());
  whole.send_request("POST", "/v1/completions", "{" + request + "}");
  ASSERT_TRUE(eventually([&] { return kit.llm->engine().stats().num_running == 2; }));
  kit.llm->engine().stop();
  const std::string rest = stream.read_until("[DONE]\n\n");
  EXPECT_NE(rest.find(R"(data: {"error":{)"), std::string::npos) << rest;
  EXPECT_EQ(whole.read_reply().status, 503);
}

TEST(Service, AnEngineThatFailsEndsItsRequestsAndHealth) {
  ServerKit kit({.fail_at_step = 3});
  HttpClient stream(kit.http->port());
  stream.send_request("POST", "/v1/completions",
                      R"({"prompt":"a","max_tokens":50,"ignore_eos":true,"stream":true})");
  const Reply reply = stream.read_reply();
  EXPECT_EQ(reply.status, 200);
  const std::vector<std::string> events = reply.events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.back(), "[DONE]");
  const auto error = boost::json::parse(events[events.size() - 2]).at("error");
  EXPECT_EQ(error.at("code").as_int64(), 500);
  EXPECT_EQ(std::string(error.at("message").as_string()).find("step"), std::string::npos)
      << "the inner error's words are not the client's";
  EXPECT_EQ(kit.get("/health").status, 503);
  EXPECT_EQ(kit.complete(R"({"prompt":"a"})").status, 503);
  EXPECT_EQ(kit.get("/metrics").status, 200);
}

TEST(Service, AnEngineThatFailsIs500ForAWholeResponse) {
  ServerKit kit({.fail_at_step = 1});
  const Reply reply = kit.complete(R"({"prompt":"a","max_tokens":50,"ignore_eos":true})");
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(error_type(reply), "internal_server_error");
}

TEST(Service, UnknownFieldsPassUnlessStrict) {
  ServerKit lax;
  EXPECT_EQ(lax.complete(R"({"prompt":"a","colour":"\u001b[31m"})").status, 200);
  ServerKit strict({.service = {.strict = true}});
  const Reply refused = strict.complete(R"({"prompt":"a","colour":1})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json().at("error").at("param").as_string(), "colour");
  EXPECT_EQ(strict.complete(R"({"prompt":"a","user":"me"})").status, 200);
}

TEST(Service, AModelWithoutATokenizerIsRefusedAtStart) {
  ServerKit kit;
  llm::Parts parts;
  parts.vocab_size = 4;
  parts.scheduler.max_model_len = 64;
  parts.scheduler.num_blocks = 64;
  parts.runner = std::make_unique<engine::FakeRunner>(
      engine::FakeRunner::Options{.max_rows = parts.scheduler.max_num_seqs, .next_token = {}});
  llm::LLM bare({}, std::move(parts));
  EXPECT_THROW(Service({.served_names = {"x"}}, bare, *kit.metrics), LoadError);
}

}  // namespace
}  // namespace quire::server
