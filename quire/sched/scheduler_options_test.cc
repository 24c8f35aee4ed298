#include "quire/sched/scheduler_options.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/base/error.h"

namespace quire::sched {
namespace {

using ::testing::HasSubstr;

constexpr SchedulerOptions kOptions{.max_num_seqs = 4, .max_model_len = 100, .num_blocks = 4};

Request request(size_t prompt, int32_t max_tokens, int32_t n = 1) {
  Request r{.id = 1, .prompt = std::vector<int32_t>(prompt), .n = n};
  r.sampling.max_tokens = max_tokens;
  return r;
}

std::string message(const Request& r, SchedulerOptions options = kOptions) {
  const auto error = refuse(r, options);
  if (!error) return "";
  EXPECT_EQ(error->kind, ErrorKind::kInvalid);
  return error->message + " [" + error->param + "]";
}

TEST(SchedulerOptions, RefusalsNameLimitPromptAndRequest) {
  SchedulerOptions ample = kOptions;
  ample.num_blocks = 100;
  EXPECT_EQ(
      message(request(60, 41), ample),
      "The context is 100 tokens long at most (--max-model-len); the prompt has 60 and 41 were "
      "requested. [max_tokens]");
  EXPECT_THAT(message(request(100, -1), ample), HasSubstr("has 100 and at least 1 were"));
  EXPECT_THAT(message(request(101, 0), ample), HasSubstr("[prompt]"));
  EXPECT_EQ(message(request(60, 6)),
            "The KV cache holds 64 tokens; the prompt has 60 and 6 were requested. [max_tokens]");
  EXPECT_THAT(message(request(1, 2147483647)), HasSubstr("2147483647"));
  EXPECT_EQ(message(request(0, 1)), "The prompt has no tokens. [prompt]");
  EXPECT_THAT(message(request(1, 1, 5)), HasSubstr("n is 5; it must be from 1 to 4"));
  EXPECT_THAT(message(request(1, 1, 0)), HasSubstr("[n]"));
}

TEST(SchedulerOptions, WhatJustFitsIsAccepted) {
  SchedulerOptions ample = kOptions;
  ample.num_blocks = 100;
  EXPECT_EQ(message(request(60, 40), ample), "");
  EXPECT_EQ(message(request(100, 0), ample), "");
  EXPECT_EQ(message(request(60, 5)), "");  // 64 stored: the last is never an input
  EXPECT_EQ(message(request(64, 1)), "");
  EXPECT_EQ(message(request(64, -1)), "");
  EXPECT_EQ(message(request(1, 1, 4)), "");
}

TEST(SchedulerOptions, TokenLimit) {
  EXPECT_EQ(token_limit(request(10, 20), kOptions), 30);
  EXPECT_EQ(token_limit(request(10, 0), kOptions), 10);
  EXPECT_EQ(token_limit(request(10, -1), kOptions), 65);
  SchedulerOptions ample = kOptions;
  ample.num_blocks = 100;
  EXPECT_EQ(token_limit(request(10, -1), ample), 100);
}

TEST(SchedulerOptions, ImpossibleOnesAreLoadErrors) {
  EXPECT_NO_THROW(check_options(kOptions));
  for (int32_t SchedulerOptions::*field :
       {&SchedulerOptions::max_num_batched_tokens, &SchedulerOptions::max_num_seqs,
        &SchedulerOptions::max_model_len, &SchedulerOptions::max_logits_rows,
        &SchedulerOptions::block_tokens, &SchedulerOptions::num_blocks}) {
    SchedulerOptions options = kOptions;
    options.*field = 0;
    EXPECT_THROW(check_options(options), LoadError);
  }
  SchedulerOptions options = kOptions;
  options.long_prefill_token_threshold = -1;
  EXPECT_THROW(check_options(options), LoadError);
  options = kOptions;
  options.num_swap_blocks = -1;
  EXPECT_THROW(check_options(options), LoadError);
  options = kOptions;
  options.max_plans_in_flight = 0;
  EXPECT_THROW(check_options(options), LoadError);
  options = kOptions;
  options.enable_chunked_prefill = false;
  options.max_num_batched_tokens = 99;
  EXPECT_THROW(check_options(options), LoadError);
}

}  // namespace
}  // namespace quire::sched
