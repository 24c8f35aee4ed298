#include "quire/server/openai_request.h"

#include <gtest/gtest.h>

#include <string>

#include "quire/server/known_fields.h"

namespace quire::server {
namespace {

std::string with(bool chat, const std::string& field) {
  const std::string rest =
      chat ? R"({"messages":[{"role":"user","content":"x"}])" : R"({"prompt":"x")";
  return rest + (field.empty() ? "}" : "," + field + "}");
}

Result<OpenAiRequest> parse(bool chat, const std::string& field) {
  const std::string body = with(chat, field);
  return chat ? parse_chat_request(body) : parse_completion_request(body);
}

struct Case {
  const char* name;
  const char* neutral;  // null: JSON null alone is neutral
  const char* other;
};

constexpr Case kUnsupported[] = {
    {"tools", "[]", R"([{"type":"function"}])"},
    {"tool_choice", R"("auto")", R"("required")"},
    {"parallel_tool_calls", "false", R"("yes")"},
    {"functions", "[]", R"([{}])"},
    {"function_call", R"("none")", R"({"name":"f"})"},
    {"response_format", R"({"type":"text"})", R"({"type":"json_object"})"},
    {"structured_outputs", "{}", R"({"regex":"a"})"},
    {"guided_json", nullptr, "{}"},
    {"guided_regex", nullptr, R"("a")"},
    {"guided_choice", nullptr, R"(["a"])"},
    {"guided_grammar", nullptr, R"("a")"},
    {"best_of", "1", "2"},
    {"use_beam_search", "false", "true"},
    {"length_penalty", "1.0", "0.5"},
    {"early_stopping", "false", "true"},
    {"suffix", R"("")", R"("x")"},
    {"audio", nullptr, "{}"},
    {"modalities", R"(["text"])", R"(["audio"])"},
    {"prediction", nullptr, "{}"},
    {"web_search_options", nullptr, "{}"},
    {"reasoning_effort", nullptr, R"("low")"},
    {"continue_final_message", "false", "true"},
    {"chat_template", nullptr, R"("x")"},
    {"documents", "[]", R"([{}])"},
    {"truncate_prompt_tokens", nullptr, "5"},
    {"bad_words", "[]", R"(["x"])"},
    {"logits_processors", "[]", R"(["x"])"},
    {"thinking_token_budget", nullptr, "5"},
    {"kv_transfer_params", "{}", R"({"a":1})"},
    {"vllm_xargs", "{}", R"({"a":1})"},
    {"prompt_embeds", nullptr, R"("x")"},
};

TEST(OpenAiRequest, UnsupportedFieldsAreRefusedByNameUnlessNeutral) {
  for (const bool chat : {false, true}) {
    for (const Case& one : kUnsupported) {
      const std::string key = std::string("\"") + one.name + "\":";
      EXPECT_TRUE(parse(chat, key + "null").ok()) << one.name;
      const char* neutral = one.neutral == nullptr ? "null" : one.neutral;
      EXPECT_TRUE(parse(chat, key + neutral).ok()) << one.name;
      const auto refused = parse(chat, key + one.other);
      ASSERT_FALSE(refused.ok()) << one.name;
      EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
      EXPECT_EQ(refused.error().param, one.name);
      EXPECT_NE(refused.error().message.find(one.name), std::string::npos);
    }
  }
  EXPECT_FALSE(parse(true, R"("echo":true)").ok());  // completions have it
  EXPECT_TRUE(parse(false, R"("echo":true)").ok());
}

TEST(OpenAiRequest, ValuesOfAWrongTypeOrRangeAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"n", "0"},
      {"n", "129"},
      {"n", "4294967297"},
      {"n", "1.5"},
      {"n", "-1"},
      {"n", "1e30"},
      {"temperature", "-1"},
      {"temperature", "\"1\""},
      {"top_p", "1.5"},
      {"top_k", "1e10"},
      {"min_p", "2"},
      {"seed", "18446744073709551615"},
      {"stop", "[1]"},
      {"stop", "[\"\"]"},
      {"stop", "5"},
      {"stop_token_ids", "[1.5]"},
      {"stream", "1"},
      {"stream", "\"x\""},
      {"logit_bias", "[]"},
      {"logit_bias", R"({"x":1})"},
      {"model", "5"},
      {"stream_options", "{}"},
      {"max_tokens", "true"},
      {"min_tokens", "-1"},
      {"allowed_token_ids", "[-1]"},
      {"max_tokens", "99999999999"},
  };
  for (const auto& [name, value] : cases) {
    for (const bool chat : {false, true}) {
      const auto refused = parse(chat, std::string("\"") + name + "\":" + value);
      ASSERT_FALSE(refused.ok()) << name << " " << value;
      EXPECT_EQ(refused.error().param, name);
    }
  }
}

TEST(OpenAiRequest, ErrorsQuoteTheBeginningOfAValueInWholeCodePoints) {
  std::string long_text;
  for (int i = 0; i < 100'000; ++i) long_text += "\u00e9";
  for (const char* before : {"", "a"}) {
    const auto refused = parse(false, "\"n\":\"" + (before + long_text) + "\"");
    ASSERT_FALSE(refused.ok());
    EXPECT_LT(refused.error().message.size(), 200U);
    const std::string quoted = boost::json::serialize(boost::json::string(refused.error().message));
    boost::system::error_code failure;
    boost::json::parse(quoted, failure);  // refuses invalid UTF-8
    EXPECT_FALSE(failure) << failure.message();
  }
}

TEST(OpenAiRequest, UnknownFieldsAreNamedWithinBounds) {
  EXPECT_TRUE(
      parse(true, R"("user":"u","store":false,"metadata":{},"seed":1)")->unknown_fields.empty());
  std::string many = R"("colour":1)";
  for (int i = 0; i < 100; ++i) many += ",\"x" + std::to_string(i) + std::string(200, 'y') + "\":1";
  const auto request = parse(false, many);
  ASSERT_TRUE(request.ok());
  ASSERT_EQ(request->unknown_fields.size(), 16U);
  EXPECT_EQ(request->unknown_fields[0], "colour");
  EXPECT_EQ(request->unknown_fields[1].size(), 64U);
}

TEST(UnknownFieldLog, SaysEachNameOnceAndHasABound) {
  UnknownFieldLog log;
  EXPECT_TRUE(log.note("a\x1b[31m\n"));
  EXPECT_FALSE(log.note("a\x1b[31m\n"));
  int said = 1;
  for (int i = 0; i < 1000; ++i) said += log.note("x" + std::to_string(i)) ? 1 : 0;
  EXPECT_EQ(said, 256);
}

TEST(OpenAiRequest, BodiesThatAreNoRequestAreRefused) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("{}"),
        "{\"prompt\":" + std::string(100'000, '['), std::string("{\"prompt\":\"\xff\"}"),
        std::string("{\"prompt\":\"\\ud800\"}"), std::string("{\"prompt\":\"a\"} x")}) {
    EXPECT_FALSE(parse_completion_request(body).ok());
    EXPECT_FALSE(parse_chat_request(body).ok());
  }
}

TEST(OpenAiRequest, AllChoicesOfARequestAreBounded) {
  std::string prompts = "\"a\"";
  for (int i = 1; i < 64; ++i) prompts += ",\"a\"";
  const auto body = [&](int n) {
    return "{\"prompt\":[" + prompts + "],\"n\":" + std::to_string(n) + "}";
  };
  EXPECT_TRUE(parse_completion_request(body(64)).ok());
  EXPECT_EQ(parse_completion_request(body(65)).error().param, "n");
}

TEST(OpenAiRequest, MessageShapesOfClients) {
  const auto chat = [](const std::string& message) {
    return parse_chat_request("{\"messages\":[" + message + "]}").ok();
  };
  EXPECT_TRUE(chat(R"({"role":"user","content":[{"type":"text","text":"a"},"b"]})"));
  EXPECT_TRUE(chat(R"({"role":"developer","content":"a"})"));
  EXPECT_TRUE(chat(R"({"role":"assistant","content":null,"tool_calls":[]})"));
  EXPECT_FALSE(chat(R"({"role":"assistant","content":null})"));
  EXPECT_FALSE(chat(R"({"role":"user","content":null})"));
  EXPECT_FALSE(chat(R"({"role":"user","content":[{"type":"image_url"}]})"));
  EXPECT_FALSE(chat(R"({"role":"","content":"a"})"));
  EXPECT_FALSE(chat(R"({"content":"a"})"));
  EXPECT_FALSE(chat("5"));
}

}  // namespace
}  // namespace quire::server
