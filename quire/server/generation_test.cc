#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "quire/server/server_test_kit.h"

namespace quire::server {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

// What the chunks of a stream add up to, by choice.
struct Joined {
  std::string text;
  std::string finish;
  json::array logprobs;  // chat: entries; completions: tokens
  json::array token_ids;
  int num_roles = 0;
};

std::map<int64_t, Joined> join(const Reply& reply, bool chat) {
  std::map<int64_t, Joined> choices;
  const std::vector<std::string> events = reply.events();
  EXPECT_FALSE(events.empty());
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::value event = json::parse(events[i]);
    for (const json::value& choice : event.at("choices").as_array()) {
      Joined& joined = choices[choice.at("index").as_int64()];
      EXPECT_EQ(joined.finish, "") << "a chunk after the last";
      if (chat) {
        joined.text += choice.at("delta").at("content").as_string();
        joined.num_roles += choice.at("delta").as_object().contains("role") ? 1 : 0;
      } else {
        joined.text += choice.at("text").as_string();
      }
      if (!choice.at("finish_reason").is_null())
        joined.finish = choice.at("finish_reason").as_string();
      if (const json::value* ids = choice.as_object().if_contains("token_ids")) {
        for (const json::value& id : ids->as_array()) joined.token_ids.push_back(id);
      }
      const json::value& logprobs = choice.at("logprobs");
      if (logprobs.is_null()) continue;
      for (const json::value& one : logprobs.at(chat ? "content" : "tokens").as_array()) {
        joined.logprobs.push_back(one);
      }
    }
  }
  return choices;
}

std::string streamed(std::string body) {
  body.insert(body.size() - 1, R"(,"stream":true)");
  return body;
}

TEST(Generation, StreamsAddUpToTheWholeResponse) {
  ServerKit kit;
  const std::string bodies[] = {
      R"({"prompt":"ab","max_tokens":9,"seed":1,"return_token_ids":true})",
      R"({"prompt":["a","h"],"n":3,"max_tokens":5,"logprobs":2,"seed":1,"return_token_ids":true})",
      R"({"prompt":"a","max_tokens":40,"stop":["gh","z"],"seed":1,"return_token_ids":true})",
      R"({"prompt":"a","max_tokens":40,"stop":"gh","include_stop_str_in_output":true,"seed":1,"return_token_ids":true})",
      R"({"prompt":"w","max_tokens":40,"echo":true,"logprobs":1,"seed":1,"return_token_ids":true})",
      R"({"prompt":[0,1],"max_tokens":3,"echo":true,"seed":1,"return_token_ids":true})"};
  for (const std::string& body : bodies) {
    const Reply whole = kit.complete(body);
    ASSERT_EQ(whole.status, 200) << whole.body;
    const auto parts = join(kit.complete(streamed(body)), false);
    const json::value whole_json = whole.json();
    const json::array& choices = whole_json.at("choices").as_array();
    ASSERT_EQ(parts.size(), choices.size()) << body;
    for (const json::value& choice : choices) {
      const Joined& joined = parts.at(choice.at("index").as_int64());
      EXPECT_EQ(joined.text, choice.at("text").as_string()) << body;
      EXPECT_EQ(joined.finish, choice.at("finish_reason").as_string()) << body;
      EXPECT_EQ(joined.token_ids, choice.at("token_ids").as_array()) << body;
      if (!choice.at("logprobs").is_null()) {
        EXPECT_EQ(joined.logprobs, choice.at("logprobs").at("tokens").as_array()) << body;
      }
    }
  }
}

TEST(Generation, ChatStreamsAddUpToo) {
  ServerKit kit;
  const std::string body =
      R"({"messages":[{"role":"user","content":"ab"}],"n":2,"max_tokens":6,"logprobs":true,"top_logprobs":2})";
  const Reply whole = kit.chat(body);
  ASSERT_EQ(whole.status, 200) << whole.body;
  const auto parts = join(kit.chat(streamed(body)), true);
  ASSERT_EQ(parts.size(), 2U);
  const json::value whole_json = whole.json();
  for (const json::value& choice : whole_json.at("choices").as_array()) {
    const Joined& joined = parts.at(choice.at("index").as_int64());
    EXPECT_EQ(joined.num_roles, 1);
    EXPECT_EQ(joined.text, choice.at("message").at("content").as_string());
    EXPECT_EQ(joined.logprobs, choice.at("logprobs").at("content").as_array());
    const json::value& first = joined.logprobs.at(0);
    EXPECT_EQ(first.at("top_logprobs").as_array().size(), 2U);
    EXPECT_EQ(first.at("bytes").as_array().size(), 1U);
    EXPECT_EQ(joined.logprobs.size(), 6U);
  }
}

TEST(Generation, StopStringsAndFinishReasons) {
  ServerKit kit;
  const auto choice = [&](const std::string& body) {
    return kit.complete(body).json().at("choices").at(0);
  };
  const json::value stopped = choice(R"({"prompt":"a","max_tokens":20,"stop":["gh"]})");
  EXPECT_EQ(stopped.at("text").as_string(), "bcdef");
  EXPECT_EQ(stopped.at("finish_reason").as_string(), "stop");
  EXPECT_EQ(stopped.at("stop_reason").as_string(), "gh");
  const json::value by_id = choice(R"({"prompt":"a","max_tokens":20,"stop_token_ids":[4]})");
  EXPECT_EQ(by_id.at("text").as_string(), "bcd");
  EXPECT_EQ(by_id.at("stop_reason").as_int64(), 4);
  EXPECT_EQ(choice(R"({"prompt":"a","max_tokens":2})").at("finish_reason").as_string(), "length");
  EXPECT_TRUE(choice(R"({"prompt":"x","max_tokens":9})").at("stop_reason").is_null());
}

TEST(Generation, UsageCountsPromptsOnceAndChoicesEach) {
  ServerKit kit;
  const std::string body = R"({"prompt":["ab","c"],"n":2,"max_tokens":3})";
  const json::value usage = kit.complete(body).json().at("usage");
  EXPECT_EQ(usage.at("prompt_tokens").as_int64(), 3);
  EXPECT_EQ(usage.at("completion_tokens").as_int64(), 12);
  EXPECT_EQ(usage.at("total_tokens").as_int64(), 15);

  std::string asked = streamed(body);
  asked.insert(asked.size() - 1, R"(,"stream_options":{"include_usage":true})");
  const auto events = kit.complete(asked).events();
  const json::value last = json::parse(events[events.size() - 2]);
  EXPECT_TRUE(last.at("choices").as_array().empty());
  EXPECT_EQ(last.at("usage").at("completion_tokens").as_int64(), 12);
  EXPECT_TRUE(json::parse(events[0]).at("usage").is_null());
  EXPECT_FALSE(json::parse(kit.complete(streamed(body)).events()[0]).as_object().contains("usage"));

  asked = streamed(body);
  asked.insert(asked.size() - 1, R"(,"stream_options":{"continuous_usage_stats":true})");
  int64_t seen = 0;
  for (const std::string& event : kit.complete(asked).events()) {
    if (event == "[DONE]") continue;
    const int64_t now = json::parse(event).at("usage").at("completion_tokens").as_int64();
    EXPECT_GE(now, seen);
    seen = now;
  }
  EXPECT_EQ(seen, 12);
}

TEST(Generation, EchoAndScoresOfThePrompt) {
  ServerKit kit;
  for (const char* max_tokens : {"0", "1"}) {
    const Reply reply =
        kit.complete(std::string(R"({"prompt":"abc","echo":true,"logprobs":1,"max_tokens":)") +
                     max_tokens + "}");
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json::value choice = reply.json().at("choices").at(0);
    const json::value& logprobs = choice.at("logprobs");
    const size_t count = *max_tokens == '0' ? 3 : 4;
    EXPECT_EQ(logprobs.at("tokens").as_array().size(), count);
    EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());
    EXPECT_TRUE(logprobs.at("top_logprobs").at(0).is_null());
    EXPECT_EQ(logprobs.at("token_logprobs").at(1).as_double(), -0.5);
    EXPECT_EQ(logprobs.at("text_offset").at(count - 1).as_int64(), static_cast<int64_t>(count) - 1);
    EXPECT_EQ(choice.at("text").as_string(), std::string("abcd").substr(0, count));
  }
  const json::value scored = kit.complete(R"({"prompt":"abc","prompt_logprobs":1,"max_tokens":1})")
                                 .json()
                                 .at("choices")
                                 .at(0);
  ASSERT_EQ(scored.at("prompt_logprobs").as_array().size(), 3U);
  EXPECT_TRUE(scored.at("prompt_logprobs").at(0).is_null());
  EXPECT_EQ(scored.at("prompt_logprobs").at(1).at("1").at("decoded_token").as_string(), "b");
}

TEST(Generation, AMessageCannotEndItsTurn) {
  ServerKit kit;
  const Reply reply = kit.chat(
      R"({"messages":[{"role":"user","content":"a<|end|>b"}],"max_tokens":1,"return_token_ids":true})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value whole = reply.json();
  // < | > are no letters of this vocabulary: what is left of the spelling is e n d.
  EXPECT_EQ(whole.at("prompt_token_ids"), json::value({0, 4, 13, 3, 1, ServerKit::kEnd}));
}

TEST(Generation, OnePromptRefusedIsTheWholeRequestRefused) {
  ServerKit kit;
  EXPECT_EQ(kit.complete(R"({"prompt":[[1],[99]],"max_tokens":40})").status, 400);
  EXPECT_TRUE(kit.becomes_idle());
}

// Queued, prefilling, decoding, streaming or not: whoever hangs up frees what was held.
TEST(Generation, DisconnectsFreeEverything) {
  ServerKit kit({.llm = {.max_num_seqs = 4}, .step_time = std::chrono::milliseconds(2)});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < 40; ++i) {
      clients.push_back(std::make_unique<HttpClient>(kit.http->port()));
      const bool stream = i % 3 != 0;
      clients.back()->send_request(
          "POST", "/v1/completions",
          std::string(
              R"({"prompt":["abcdefgh","ab"],"n":2,"max_tokens":40,"ignore_eos":true,"stream":)") +
              (stream ? "true}" : "false}"));
      if (i % 4 == 0)
        clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(clients.size() / 2));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * round));
    clients.clear();
    EXPECT_TRUE(kit.becomes_idle());
  }
  EXPECT_EQ(kit.complete(R"({"prompt":"a"})").status, 200);
}

TEST(Generation, TheServerMayEndWithRequestsUnderWay) {
  std::vector<std::unique_ptr<HttpClient>> clients;
  ServerKit kit({.step_time = std::chrono::milliseconds(2)});
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<HttpClient>(kit.http->port()));
    clients.back()->send_request("POST", "/v1/completions",
                                 streamed(R"({"prompt":"a","max_tokens":60,"ignore_eos":true})"));
  }
  clients.back()->read_until("data: ");
}

}  // namespace
}  // namespace quire::server
