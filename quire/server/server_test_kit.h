// HttpClient and ServerKit: a bare client whose every byte is under the test's control, and the API
// over a model without weights.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "quire/engine/fake_runner.h"
#include "quire/llm/llm.h"
#include "quire/llm/parts.h"
#include "quire/server/http_server.h"
#include "quire/server/service.h"

namespace quire::server {

inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

struct Reply {
  int status = 0;  // 0: the connection ended before an answer
  std::string head;
  std::string body;  // chunks joined

  boost::json::value json() const { return boost::json::parse(body); }
  bool has_header(const std::string& line) const { return head.find(line) != std::string::npos; }
  /// The data lines of a server-sent event stream.
  std::vector<std::string> events() const {
    std::vector<std::string> list;
    for (size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
      const size_t end = body.find("\n\n", at);
      list.push_back(body.substr(at + 6, end - at - 6));
      at = end;
    }
    return list;
  }
};

class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    timeval limit{5, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~HttpClient() { close(fd_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void send_text(const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t now = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) return;
      sent += static_cast<size_t>(now);
    }
  }
  /// Reads until `mark` was seen or the connection ended; what lies behind it stays.
  std::string read_until(const std::string& mark) {
    size_t at = 0;
    while ((at = buffer_.find(mark)) == std::string::npos && receive()) {
    }
    return take(at == std::string::npos ? buffer_.size() : at + mark.size());
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return take(buffer_.size());
  }

  void send_request(const std::string& method, const std::string& path,
                    const std::string& body = "", const std::string& headers = "") {
    send_text(method + " " + path + " HTTP/1.1\r\nHost: x\r\n" + headers +
              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  Reply read_reply() {
    Reply reply;
    reply.head = read_until("\r\n\r\n");
    if (reply.head.size() < 12) return reply;
    reply.status = std::stoi(reply.head.substr(9, 3));
    const size_t length = reply.head.find("Content-Length: ");
    if (reply.has_header("Transfer-Encoding: chunked")) {
      for (;;) {
        const size_t size = std::stoul("0" + read_until("\r\n"), nullptr, 16);
        reply.body += read_bytes(size);
        read_bytes(2);
        if (size == 0) break;
      }
    } else if (length != std::string::npos) {
      reply.body = read_bytes(std::stoul(reply.head.substr(length + 16)));
    }
    return reply;
  }
  Reply request(const std::string& method, const std::string& path, const std::string& body = "",
                const std::string& headers = "") {
    send_request(method, path, body, headers);
    return read_reply();
  }

 private:
  bool receive() {
    char bytes[4096];
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    if (got > 0) buffer_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }
  std::string take(size_t count) {
    std::string taken = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return taken;
  }
  std::string read_bytes(size_t count) {
    while (buffer_.size() < count && receive()) {
    }
    return take(std::min(count, buffer_.size()));
  }

  int fd_;
  std::string buffer_;
};

/// The API over a model of the letters a to z, whose next token is the next letter ('z' ends), and
/// <|end|>, a special token.
class ServerKit {
 public:
  static constexpr int32_t kEnd = 26;

  struct Options {
    llm::Options llm = {};
    Service::Options service = {};
    std::chrono::microseconds step_time{0};
    int64_t fail_at_step = -1;
  };

  ServerKit() : ServerKit(Options{}) {}
  explicit ServerKit(Options options) {
    if (options.service.served_names.empty()) options.service.served_names = {"letters", "abc"};
    llm::Parts parts = make_parts(options);
    ledger = parts.ledger;
    llm = std::make_unique<llm::LLM>(options.llm, std::move(parts));
    metrics = std::make_unique<Metrics>(Metrics::Options{
        .model_name = "letters", .max_model_len = 64, .block_tokens = 16, .num_blocks = 64});
    service = std::make_unique<Service>(options.service, *llm, *metrics);
    HttpServer::Options http_options;
    http_options.host = "127.0.0.1";
    http_options.port = 0;
    http_options.ledger = ledger.get();
    http = std::make_unique<HttpServer>(
        http_options,
        [this](const HttpRequest& request, const std::shared_ptr<ResponseWriter>& writer) {
          service->handle(request, writer);
        });
    http->start();
  }
  ~ServerKit() {
    llm->engine().stop();
    http->stop();
  }

  Reply post(const std::string& path, const std::string& body) {
    return HttpClient(http->port()).request("POST", path, body);
  }
  Reply complete(const std::string& body) { return post("/v1/completions", body); }
  Reply chat(const std::string& body) { return post("/v1/chat/completions", body); }
  Reply get(const std::string& path) { return HttpClient(http->port()).request("GET", path); }
  bool becomes_idle() {
    return eventually([this] {
      const engine::EngineStats stats = llm->engine().stats();
      return stats.num_running == 0 && stats.num_waiting == 0 && stats.kv_cache_usage == 0 &&
             http->num_active() == 0;
    });
  }

  std::shared_ptr<MemoryLedger> ledger;
  std::unique_ptr<llm::LLM> llm;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<Service> service;
  std::unique_ptr<HttpServer> http;

 private:
  static llm::Parts make_parts(const Options& options) {
    text::TokenizerSpec spec;
    for (char letter = 'a'; letter <= 'z'; ++letter) spec.vocab.emplace_back(1, letter);
    spec.vocab.emplace_back("<|end|>");
    spec.added_tokens.push_back({.id = kEnd, .content = "<|end|>", .special = true});
    spec.pre_tokenizers.emplace_back();  // byte level
    llm::Parts parts;
    parts.tokenizer = std::make_unique<text::Tokenizer>(std::move(spec));
    parts.chat_template = std::make_unique<text::ChatTemplate>(
        "{% for m in messages %}{{ m.content }}{% endfor %}<|end|>", "test");
    parts.config.eos_token_ids = {25};
    parts.generation.max_new_tokens = 4;
    parts.vocab_size = 27;
    parts.scheduler.max_model_len = 64;
    parts.scheduler.num_blocks = 64;
    parts.scheduler.max_num_seqs = options.llm.max_num_seqs;
    parts.runner = std::make_unique<engine::FakeRunner>(engine::FakeRunner::Options{
        .max_rows = options.llm.max_num_seqs,
        .next_token = [](const sched::RowStart& row,
                         int32_t position) { return (row.prompt[0] + position) % 26; },
        .step_time = options.step_time,
        .fail_at_step = options.fail_at_step,
    });
    return parts;
  }
};

}  // namespace quire::server
