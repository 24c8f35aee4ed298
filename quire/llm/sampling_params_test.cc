#include "quire/llm/sampling_params.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace quire::llm {
namespace {

std::string refused(const SamplingParams& params) {
  const std::optional<Error> error = validate(params);
  if (!error) return "accepted";
  EXPECT_EQ(error->kind, ErrorKind::kInvalid);
  return error->param;
}

TEST(SamplingParams, RangesNameTheirField) {
  EXPECT_EQ(refused({}), "accepted");
  EXPECT_EQ(refused({.n = 0}), "n");
  EXPECT_EQ(refused({.n = 129}), "n");
  EXPECT_EQ(refused({.temperature = -1.0f}), "temperature");
  EXPECT_EQ(refused({.temperature = std::numeric_limits<float>::quiet_NaN()}), "temperature");
  EXPECT_EQ(refused({.top_p = 0.0f}), "top_p");
  EXPECT_EQ(refused({.top_p = 1.1f}), "top_p");
  EXPECT_EQ(refused({.top_k = -2}), "top_k");
  EXPECT_EQ(refused({.min_p = 1.5f}), "min_p");
  EXPECT_EQ(refused({.repetition_penalty = 0.0f}), "repetition_penalty");
  EXPECT_EQ(refused({.presence_penalty = 2.5f}), "presence_penalty");
  EXPECT_EQ(refused({.frequency_penalty = -2.5f}), "frequency_penalty");
  EXPECT_EQ(refused({.max_tokens = -1}), "max_tokens");
  EXPECT_EQ(refused({.max_tokens = 3, .min_tokens = 4}), "min_tokens");
  EXPECT_EQ(refused({.stop = {"ok", ""}}), "stop");
  EXPECT_EQ(refused({.logprobs = -1}), "logprobs");
  EXPECT_EQ(refused({.prompt_logprobs = -1}), "prompt_logprobs");
}

TEST(SamplingParams, DefaultsFillOnlyWhatIsUnset) {
  const checkpoint::GenerationDefaults defaults{.temperature = 0.6,
                                                .top_p = 0.9,
                                                .top_k = 20,
                                                .min_p = {},
                                                .repetition_penalty = 1.1,
                                                .max_new_tokens = 5};
  const SamplingParams merged =
      merge_defaults({.temperature = 0.0f, .top_k = 0, .max_tokens = {}}, defaults);
  EXPECT_EQ(merged.temperature, 0.0f);
  EXPECT_EQ(merged.top_p, 0.9f);
  EXPECT_EQ(merged.top_k, 0);
  EXPECT_FALSE(merged.min_p.has_value());
  EXPECT_EQ(merged.repetition_penalty, 1.1f);
}

TEST(SamplingParams, UnsetMaxTokensTakesWhatIsLeft) {
  const auto tokens = [](std::optional<int32_t> asked, std::optional<int64_t> by_default,
                         size_t prompt) {
    return make_request(std::vector<int32_t>(prompt, 1), {.max_tokens = asked}, 100, by_default)
        .value()
        .sampling.max_tokens;
  };
  EXPECT_EQ(tokens({}, {}, 30), 70);
  EXPECT_EQ(tokens({}, 20, 30), 20);
  EXPECT_EQ(tokens({}, 200, 30), 70);
  EXPECT_EQ(tokens(90, 20, 30), 90);  // the engine refuses it, with the numbers
  EXPECT_EQ(tokens(0, {}, 30), 0);
  EXPECT_EQ(tokens({}, {}, 100), 1);
}

// Field report 11: a request without a seed has its own, and touches no other's.
TEST(SamplingParams, SeedsAreDrawnOnlyWhereNoneIsGiven) {
  const auto seed = [](SamplingParams params) {
    return make_request({1}, params, 100).value().sampling.seed;
  };
  EXPECT_EQ(seed({.seed = 7}), 7U);
  EXPECT_EQ(seed({.seed = -1}), std::numeric_limits<uint64_t>::max());
  EXPECT_NE(seed({}), seed({}));
  EXPECT_EQ(seed({.temperature = 0.0f}), seed({.temperature = 0.0f}));
}

TEST(SamplingParams, EveryFieldReachesTheEngine) {
  const SamplingParams params{.n = 3,
                              .temperature = 0.5f,
                              .top_p = 0.4f,
                              .top_k = 6,
                              .min_p = 0.1f,
                              .repetition_penalty = 1.2f,
                              .presence_penalty = 0.3f,
                              .frequency_penalty = 0.7f,
                              .seed = 4,
                              .max_tokens = 9,
                              .min_tokens = 2,
                              .ignore_eos = true,
                              .stop = {"s"},
                              .stop_token_ids = {8},
                              .include_stop_str_in_output = true,
                              .skip_special_tokens = false,
                              .logprobs = 1,
                              .prompt_logprobs = 2,
                              .logit_bias = {{5, 1.5f}},
                              .allowed_token_ids = {5, 6},
                              .priority = -1};
  const engine::EngineRequest request = make_request({1, 2}, params, 100).value();
  const sched::SamplingSpec& spec = request.sampling;
  EXPECT_EQ(request.n, 3);
  EXPECT_EQ(request.priority, -1);
  EXPECT_EQ(request.stop, params.stop);
  EXPECT_TRUE(request.include_stop_str_in_output);
  EXPECT_FALSE(request.skip_special_tokens);
  EXPECT_EQ(spec.temperature, 0.5f);
  EXPECT_EQ(spec.top_p, 0.4f);
  EXPECT_EQ(spec.top_k, 6);
  EXPECT_EQ(spec.min_p, 0.1f);
  EXPECT_EQ(spec.repetition_penalty, 1.2f);
  EXPECT_EQ(spec.presence_penalty, 0.3f);
  EXPECT_EQ(spec.frequency_penalty, 0.7f);
  EXPECT_EQ(spec.seed, 4U);
  EXPECT_EQ(spec.max_tokens, 9);
  EXPECT_EQ(spec.min_tokens, 2);
  EXPECT_TRUE(spec.ignore_eos);
  EXPECT_EQ(spec.stop_token_ids, params.stop_token_ids);
  EXPECT_EQ(spec.logprobs, 1);
  EXPECT_EQ(spec.prompt_logprobs, 2);
  EXPECT_EQ(spec.logit_bias, params.logit_bias);
  EXPECT_EQ(spec.allowed_token_ids, params.allowed_token_ids);
}

}  // namespace
}  // namespace quire::llm
