#include "quire/llm/llm.h"

#include <gtest/gtest.h>

#include <memory>

#include "quire/base/error.h"
#include "quire/engine/fake_runner.h"
#include "quire/llm/parts.h"

namespace quire::llm {
namespace {

/// A model of 26 tokens, a to z, whose next token is the next letter; 'z' ends.
Parts alphabet_parts(const Options& options) {
  text::TokenizerSpec spec;
  for (char letter = 'a'; letter <= 'z'; ++letter) spec.vocab.emplace_back(1, letter);
  spec.pre_tokenizers.emplace_back();  // byte level
  Parts parts;
  parts.tokenizer = std::make_unique<text::Tokenizer>(std::move(spec));
  parts.config.eos_token_ids = {25, 1000};  // the second is none of this vocabulary's
  parts.generation.max_new_tokens = 4;
  parts.vocab_size = 26;
  parts.scheduler.max_model_len = 64;
  parts.scheduler.num_blocks = 64;
  parts.scheduler.max_num_seqs = options.max_num_seqs;
  parts.runner = std::make_unique<engine::FakeRunner>(engine::FakeRunner::Options{
      .max_rows = options.max_num_seqs,
      .next_token = [](const sched::RowStart& row,
                       int32_t position) { return (row.prompt[0] + position) % 26; },
  });
  return parts;
}

class LlmTest : public testing::Test {
 protected:
  std::unique_ptr<LLM> make(const Options& options = {}) {
    return std::make_unique<LLM>(options, alphabet_parts(options));
  }
  std::vector<RequestOutput> generate(LLM& llm, std::vector<std::string> prompts,
                                      const SamplingParams& params) {
    return llm.generate(std::span<const std::string>(prompts), params);
  }
};

TEST_F(LlmTest, GeneratesForAllPromptsInTheirOrder) {
  const auto llm = make();
  const auto outputs = generate(*llm, {"a", "hij", "w"}, {.max_tokens = 5});
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(outputs[0].outputs[0].text, "bcdef");
  EXPECT_EQ(outputs[1].outputs[0].text, "klmno");
  EXPECT_EQ(outputs[1].prompt_token_ids, (std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(outputs[1].summary.num_generated_tokens, 5);
  EXPECT_EQ(outputs[0].outputs[0].finish_reason, engine::FinishReason::kLength);
  EXPECT_EQ(outputs[2].outputs[0].text, "xy");
  EXPECT_EQ(outputs[2].outputs[0].finish_reason, engine::FinishReason::kStop);
}

TEST_F(LlmTest, TheModelsDefaultsHold) {
  const auto llm = make();
  EXPECT_EQ(generate(*llm, {"a"}, {})[0].outputs[0].text, "bcde");  // max_new_tokens
}

TEST_F(LlmTest, ChoicesStopsAndLogprobs) {
  const auto llm = make();
  const auto outputs =
      generate(*llm, {"a"}, {.n = 2, .max_tokens = 20, .stop = {"gh"}, .logprobs = 1});
  ASSERT_EQ(outputs[0].outputs.size(), 2U);
  for (const CompletionOutput& choice : outputs[0].outputs) {
    EXPECT_EQ(choice.text, "bcdef");
    EXPECT_EQ(choice.stop_string, "gh");
    EXPECT_EQ(choice.token_ids.size(), 7U);
    EXPECT_EQ(choice.logprobs.size(), 7U);
  }
  EXPECT_EQ(outputs[0].outputs[1].index, 1);
}

TEST_F(LlmTest, ABadPromptIsItsOwnErrorOnly) {
  const auto llm = make();
  const std::vector<std::vector<int32_t>> prompts = {{1}, {}, {99}, {2}};
  const auto outputs = llm->generate(prompts, {.max_tokens = 1});
  EXPECT_FALSE(outputs[0].error.has_value());
  EXPECT_EQ(outputs[1].error->param, "prompt");
  EXPECT_EQ(outputs[2].error->param, "prompt");
  EXPECT_EQ(outputs[3].outputs[0].token_ids.size(), 1U);
  EXPECT_EQ(llm->generate(prompts, {.top_p = 2.0f})[0].error->param, "top_p");
}

TEST_F(LlmTest, MorePromptsThanTheQueueHolds) {
  Options options;
  options.max_waiting_requests = 3;
  options.max_num_seqs = 2;
  const auto llm = make(options);
  const auto outputs = generate(*llm, std::vector<std::string>(40, "a"), {.max_tokens = 3});
  for (const RequestOutput& output : outputs) {
    ASSERT_FALSE(output.error.has_value());
    EXPECT_EQ(output.outputs[0].text, "bcd");
  }
}

TEST_F(LlmTest, ChatRendersItsPromptOnce) {
  Parts parts = alphabet_parts({});
  parts.chat_template = std::make_unique<text::ChatTemplate>(
      "{% for m in messages %}{{ m.content }}{% endfor %}{{ 'x' if add_generation_prompt }}",
      "test");
  LLM llm({}, std::move(parts));
  const text::Value message(text::Value::Dict{{"role", "user"}, {"content", "hij"}});
  const RequestOutput output = llm.chat({message}, {.max_tokens = 2});
  EXPECT_EQ(output.prompt_token_ids, (std::vector<int32_t>{7, 8, 9, 23}));
  EXPECT_EQ(output.outputs[0].text, "lm");
}

TEST_F(LlmTest, SpecialTokensReachTheTemplateUnlessGiven) {
  Parts parts = alphabet_parts({});
  text::TokenizerSpec spec;
  spec.vocab = {"a"};
  spec.pre_tokenizers.emplace_back();  // byte level
  spec.bos_token = "<s>";
  parts.tokenizer = std::make_unique<text::Tokenizer>(std::move(spec));
  parts.chat_template =
      std::make_unique<text::ChatTemplate>("{{ bos_token }}|{{ eos_token is defined }}", "test");
  LLM llm({}, std::move(parts));
  EXPECT_EQ(llm.render_chat({}).value(), "<s>|False");
  EXPECT_EQ(llm.render_chat({{"bos_token", "<b>"}}).value(), "<b>|False");
}

TEST_F(LlmTest, WithoutATokenizerTextIsRefusedAndIdsAreServed) {
  Parts parts = alphabet_parts({});
  parts.tokenizer.reset();
  LLM llm({}, std::move(parts));
  EXPECT_EQ(generate(llm, {"a"}, {})[0].error->param, "prompt");
  const std::vector<std::vector<int32_t>> ids = {{0}};
  EXPECT_EQ(llm.generate(ids, {.max_tokens = 2})[0].outputs[0].token_ids,
            (std::vector<int32_t>{1, 2}));
}

TEST_F(LlmTest, ChatNeedsATemplate) {
  const auto llm = make();
  const RequestOutput output = llm->chat({}, {});
  ASSERT_TRUE(output.error.has_value());
  EXPECT_EQ(output.error->param, "messages");
}

TEST(Open, NamesWhatIsMissingOrWrong) {
  Options options;
  options.model = "/no/such/model";
  EXPECT_THROW(LLM llm(options), LoadError);
  options.generation_config = "other";
  try {
    LLM llm(options);
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_NE(std::string(error.what()).find("--generation-config"), std::string::npos);
  }
}

}  // namespace
}  // namespace quire::llm
