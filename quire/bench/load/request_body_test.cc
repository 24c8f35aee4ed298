#include "quire/bench/load/request_body.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

namespace quire::bench {
namespace {

namespace json = boost::json;

const WorkloadRequest kRequest = {.prompt = {300, 301, 300}, .output_len = 7};

TEST(RequestBody, CompletionsCarryTheExactIds) {
  const json::value body = json::parse(request_body(kRequest, {.model = "m", .ignore_eos = true}));
  EXPECT_EQ(body.at("prompt"), (json::value{300, 301, 300}));
  EXPECT_EQ(body.at("max_tokens").as_int64(), 7);
  EXPECT_TRUE(body.at("ignore_eos").as_bool());
  EXPECT_TRUE(body.at("stream_options").at("include_usage").as_bool());
}

TEST(RequestBody, WordsStandForTokens) {
  const json::value body = json::parse(request_body(kRequest, {.model = "m", .text = true}));
  const std::string prompt(body.at("prompt").as_string());
  const size_t first = prompt.find(' ');
  const size_t last = prompt.rfind(' ');
  EXPECT_NE(first, last);
  EXPECT_EQ(prompt.substr(0, first), prompt.substr(last + 1));
  EXPECT_FALSE(body.as_object().contains("ignore_eos"));
  const json::value chat = json::parse(request_body(kRequest, {.model = "m", .chat = true}));
  EXPECT_EQ(chat.at("messages").at(0).at("content").as_string(), prompt);
  EXPECT_EQ(chat.at("messages").at(0).at("role").as_string(), "user");
}

}  // namespace
}  // namespace quire::bench
