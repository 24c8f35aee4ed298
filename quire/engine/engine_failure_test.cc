// What the engine refuses, and how it ends: full queues, bad requests, draining, stopping, failing.
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "quire/engine/engine_test_kit.h"

namespace quire::engine {
namespace {

using namespace std::chrono_literals;

TEST(EngineRefuses, WhatItCannotServeAndNamesTheField) {
  EngineKit kit({});
  const auto refused = [&kit](auto change) -> std::string {
    EngineRequest request = kit.request({1, 2, 3}, 5);
    change(request);
    Result<OutputStream> result = kit.engine->submit(std::move(request));
    if (result.ok()) return "accepted";
    EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
    EXPECT_FALSE(result.error().message.empty());
    return result.error().param;
  };
  EXPECT_EQ(refused([](EngineRequest&) {}), "accepted");
  // Field report 14.
  EXPECT_EQ(refused([](EngineRequest& r) { r.prompt.clear(); }), "prompt");
  // Field report 32: ids outside the logits' width, wherever they may stand.
  const auto outside = static_cast<int32_t>(EngineKit::kVocab);
  EXPECT_EQ(refused([=](EngineRequest& r) { r.prompt = {1, outside}; }), "prompt");
  EXPECT_EQ(refused([](EngineRequest& r) { r.prompt = {-1}; }), "prompt");
  EXPECT_EQ(refused([=](EngineRequest& r) {
              r.sampling.logit_bias = {{outside, 1.0f}};
            }),
            "logit_bias");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.logit_bias = {{-1, 1.0f}}; }), "logit_bias");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.logit_bias = {{1, 101.0f}}; }), "logit_bias");
  EXPECT_EQ(refused([=](EngineRequest& r) { r.sampling.stop_token_ids = {outside}; }),
            "stop_token_ids");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.allowed_token_ids = {-5}; }),
            "allowed_token_ids");
  EXPECT_EQ(refused([](EngineRequest& r) { r.n = 0; }), "n");
  EXPECT_EQ(refused([](EngineRequest& r) { r.n = 129; }), "n");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.logprobs = 21; }), "logprobs");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.prompt_logprobs = 21; }), "prompt_logprobs");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.temperature = -0.1f; }), "temperature");
  EXPECT_EQ(refused([](EngineRequest& r) {
              r.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
            }),
            "temperature");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.top_p = 1.5f; }), "top_p");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.repetition_penalty = 0.0f; }),
            "repetition_penalty");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.max_tokens = -7; }), "max_tokens");
  EXPECT_EQ(refused([](EngineRequest& r) { r.sampling.min_tokens = 6; }), "min_tokens");
  EXPECT_EQ(refused([](EngineRequest& r) { r.stop = {""}; }), "stop");
  EXPECT_EQ(refused([](EngineRequest& r) { r.stop = std::vector<std::string>(65, "x"); }), "stop");
}

TEST(EngineRefuses, ContextOverflowWithAllThreeNumbers) {
  EngineKit kit({});
  const auto limit = static_cast<int32_t>(kit.engine->options().scheduler.max_model_len);
  Result<OutputStream> result =
      kit.engine->submit(kit.request(std::vector<int32_t>(100, 1), limit - 99));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().param, "max_tokens");
  for (const int32_t number : {limit, 100, limit - 99}) {
    EXPECT_NE(result.error().message.find(std::to_string(number)), std::string::npos);
  }
  EXPECT_EQ(kit.run(kit.request(std::vector<int32_t>(100, 1), limit - 100)).choices[0].finish,
            FinishReason::kLength);
}

TEST(EngineRefuses, WhenTheQueueIsFull) {
  EngineKit::Options options;
  options.engine.scheduler.max_num_seqs = 1;
  options.engine.max_waiting_requests = 3;
  options.engine.max_waiting_prompt_tokens = 50;
  options.step_time = 1ms;
  EngineKit kit(options);
  OutputStream first = kit.submit(kit.request({1}, 400));
  std::vector<OutputEvent> events;
  ASSERT_TRUE(first.wait(events));  // it runs; what follows waits
  std::vector<OutputStream> waiting;
  waiting.push_back(kit.submit(kit.request(std::vector<int32_t>(20, 1), 1)));
  Result<OutputStream> by_tokens = kit.engine->submit(kit.request(std::vector<int32_t>(31, 1), 1));
  ASSERT_FALSE(by_tokens.ok());
  EXPECT_EQ(by_tokens.error().kind, ErrorKind::kOverloaded);
  waiting.push_back(kit.submit(kit.request({1}, 1)));
  waiting.push_back(kit.submit(kit.request({1}, 1)));
  Result<OutputStream> by_count = kit.engine->submit(kit.request({1}, 1));
  ASSERT_FALSE(by_count.ok());
  EXPECT_EQ(by_count.error().kind, ErrorKind::kOverloaded);
  first.cancel();
  for (OutputStream& stream : waiting) {
    EXPECT_EQ(collect(stream).choices[0].finish, FinishReason::kLength);
  }
  EXPECT_EQ(kit.run(kit.request({1}, 1)).choices[0].tokens.size(), 1U);
}

TEST(EngineEnds, DrainLetsStreamsFinish) {
  EngineKit::Options options;
  options.step_time = 500us;
  EngineKit kit(options);
  OutputStream stream = kit.submit(kit.request({1}, 40));
  EXPECT_FALSE(kit.engine->drain(1ms));
  Result<OutputStream> late = kit.engine->submit(kit.request({1}, 1));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().kind, ErrorKind::kUnavailable);
  EXPECT_TRUE(kit.engine->drain(10s));
  const Collected got = collect(stream);
  EXPECT_EQ(got.choices[0].finish, FinishReason::kLength);
  EXPECT_EQ(got.choices[0].tokens.size(), 40U);
}

TEST(EngineEnds, StopAbortsWhatRunsAndWaits) {
  EngineKit::Options options;
  options.step_time = 1ms;
  options.engine.scheduler.max_num_seqs = 1;
  EngineKit kit(options);
  OutputStream running = kit.submit(kit.request({1}, 400));
  OutputStream waiting = kit.submit(kit.request({1}, 400));
  std::vector<OutputEvent> events;
  ASSERT_TRUE(running.wait(events));
  kit.engine->stop();
  EXPECT_EQ(collect(running).choices[0].finish, FinishReason::kAbort);
  EXPECT_EQ(collect(waiting).choices[0].finish, FinishReason::kAbort);
  EXPECT_EQ(kit.engine->state(), Engine::State::kStopped);
  EXPECT_TRUE(kit.engine->drain(0s));
}

TEST(EngineEnds, AStreamMayOutliveTheEngine) {
  EngineKit kit({});
  OutputStream stream = kit.submit(kit.request({1}, 3));
  kit.engine.reset();
  stream.cancel();
  const FinishReason finish = collect(stream).choices[0].finish;
  EXPECT_TRUE(finish == FinishReason::kAbort || finish == FinishReason::kLength);
}

TEST(EngineEnds, AFailingStepTellsEveryStreamAndRefusesTheNext) {
  EngineKit::Options options;
  options.fail_at_step = 5;
  options.step_time = 500us;
  options.engine.scheduler.max_num_seqs = 2;
  EngineKit kit(options);
  std::vector<OutputStream> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(kit.submit(kit.request({1, 2}, 100)));
  for (OutputStream& stream : streams) {
    const Collected got = collect(stream);
    EXPECT_EQ(got.choices[0].finish, FinishReason::kError);
    ASSERT_TRUE(got.choices[0].error.has_value());
    EXPECT_EQ(got.choices[0].error->kind, ErrorKind::kInternal);
    EXPECT_EQ(got.choices[0].error->message.find("a step that was to fail"), std::string::npos);
  }
  EXPECT_EQ(kit.engine->state(), Engine::State::kDead);
  Result<OutputStream> late = kit.engine->submit(kit.request({1}, 1));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().kind, ErrorKind::kUnavailable);
  EXPECT_TRUE(kit.engine->drain(0s));
}

}  // namespace
}  // namespace quire::engine
