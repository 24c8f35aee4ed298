#include "quire/llm/json_value.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace quire::llm {
namespace {

using text::Value;

TEST(ToValue, KeepsKindsAndOrder) {
  const Value value = to_value(boost::json::parse(
      R"({"z": 1, "a": [null, true, -2, 2.0, "é"], "big": 18446744073709551615})"));
  const Value::Dict& dict = value.as_dict();
  ASSERT_EQ(dict.size(), 3U);
  EXPECT_EQ(dict[0].first, "z");
  EXPECT_EQ(dict[0].second.kind(), Value::Kind::kInt);
  const Value::List& list = dict[1].second.as_list();
  EXPECT_EQ(list[0].kind(), Value::Kind::kNone);
  EXPECT_TRUE(list[1].as_bool());
  EXPECT_EQ(list[2].as_int(), -2);
  EXPECT_EQ(list[3].kind(), Value::Kind::kFloat);
  EXPECT_EQ(list[4].as_string(), "é");
  EXPECT_EQ(dict[2].second.kind(), Value::Kind::kFloat);
  EXPECT_EQ(dict[2].second.as_float(), 18446744073709551616.0);
}

const Value* find(const Value::Dict& variables, std::string_view name) {
  for (const auto& [key, value] : variables) {
    if (key == name) return &value;
  }
  return nullptr;
}

TEST(ChatVariables, FillsInWhatTheRequestLeavesOut) {
  const auto variables =
      chat_variables(boost::json::parse(R"({"messages": []})"), {{"bos_token", "<s>"}});
  ASSERT_TRUE(variables.ok());
  EXPECT_TRUE(find(*variables, "add_generation_prompt")->as_bool());
  EXPECT_EQ(find(*variables, "tools")->kind(), Value::Kind::kNone);
  EXPECT_EQ(find(*variables, "documents")->kind(), Value::Kind::kNone);
  EXPECT_EQ(find(*variables, "bos_token")->as_string(), "<s>");
  EXPECT_EQ(find(*variables, "eos_token"), nullptr);
}

TEST(ChatVariables, TheRequestOverridesDefaultsAndItsKwargsOverrideBoth) {
  const auto variables = chat_variables(
      boost::json::parse(
          R"({"messages": [], "bos_token": "b1", "eos_token": "e1", "add_generation_prompt": false,
              "chat_template_kwargs": {"eos_token": "e2", "enable_thinking": false}})"),
      {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  ASSERT_TRUE(variables.ok());
  EXPECT_EQ(find(*variables, "bos_token")->as_string(), "b1");
  EXPECT_EQ(find(*variables, "eos_token")->as_string(), "e2");
  EXPECT_FALSE(find(*variables, "add_generation_prompt")->as_bool());
  EXPECT_FALSE(find(*variables, "enable_thinking")->as_bool());
}

TEST(ChatVariables, NamesTheFieldAtFault) {
  EXPECT_EQ(chat_variables(boost::json::parse("{}"), {}).error().param, "messages");
  EXPECT_EQ(chat_variables(boost::json::parse(R"({"messages": "hi"})"), {}).error().param,
            "messages");
  EXPECT_EQ(chat_variables(boost::json::parse(R"({"messages": [], "chat_template_kwargs": 1})"), {})
                .error()
                .param,
            "chat_template_kwargs");
  EXPECT_FALSE(chat_variables(boost::json::parse("[]"), {}).ok());
}

}  // namespace
}  // namespace quire::llm
