#include "quire/engine/engine.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "quire/engine/engine_test_kit.h"

namespace quire::engine {
namespace {

using namespace std::chrono_literals;

TEST(Engine, StreamsTheRunnersTokens) {
  EngineKit kit({});
  const Collected got = kit.run(kit.request({3, 5, 8}, 6));
  ASSERT_EQ(got.choices.size(), 1U);
  std::vector<int32_t> expected;
  for (int32_t position = 3; position < 9; ++position)
    expected.push_back(kit.token_at(3, position));
  EXPECT_EQ(got.choices[0].tokens, expected);
  EXPECT_EQ(got.choices[0].finish, FinishReason::kLength);
  ASSERT_TRUE(got.summary.has_value());
  EXPECT_EQ(got.summary->num_prompt_tokens, 3);
  EXPECT_EQ(got.summary->num_generated_tokens, 6);
  EXPECT_LE(got.summary->arrival, got.summary->first_scheduled);
  EXPECT_LE(got.summary->first_scheduled, got.summary->first_token);
  EXPECT_LT(got.summary->first_token, got.summary->last_token);
  const EngineStats stats = kit.engine->stats();
  EXPECT_EQ(stats.prompt_tokens, 3);
  EXPECT_EQ(stats.generation_tokens, 6);
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::kLength)], 1);
  EXPECT_EQ(stats.num_running, 0);
  EXPECT_EQ(stats.kv_cache_usage, 0.0);
}

TEST(Engine, ChoicesAreStreamedApart) {
  EngineKit kit({});
  EngineRequest request = kit.request({1, 2, 3, 4}, 5);
  request.n = 3;
  const Collected got = kit.run(std::move(request));
  ASSERT_EQ(got.choices.size(), 3U);
  for (const CollectedChoice& choice : got.choices) {
    EXPECT_EQ(choice.tokens.size(), 5U);
    EXPECT_EQ(choice.finish, FinishReason::kLength);
  }
  EXPECT_EQ(got.summary->num_generated_tokens, 15);
}

TEST(Engine, StopTokensOfModelAndRequestAreJoined) {
  EngineKit::Options options;
  options.engine.eos_token_ids = {90};
  options.next_token = [](const sched::RowStart& row, int32_t position) {
    return position == 4 ? row.prompt[0] : 10 + position;
  };
  EngineKit kit(options);
  // Field report 4: a request's own stops do not replace the model's.
  EngineRequest request = kit.request({90}, 20);
  request.sampling.stop_token_ids = {50};
  Collected got = kit.run(request);
  EXPECT_EQ(got.choices[0].tokens, (std::vector<int32_t>{11, 12, 13, 90}));
  EXPECT_EQ(got.choices[0].finish, FinishReason::kStop);
  EXPECT_FALSE(got.choices[0].stop_token.has_value());
  EXPECT_TRUE(got.choices[0].drop_last_text);

  request.prompt = {50};
  got = kit.run(request);
  EXPECT_EQ(got.choices[0].tokens.size(), 4U);
  EXPECT_EQ(got.choices[0].stop_token, 50);

  request.prompt = {90};
  request.sampling.ignore_eos = true;
  EXPECT_EQ(kit.run(request).choices[0].finish, FinishReason::kLength);
}

TEST(Engine, ScoresAPromptWithoutGenerating) {
  EngineKit kit({});
  // Field report 15: max_tokens 0 with prompt log-probabilities.
  EngineRequest request = kit.request({4, 5, 6, 7}, 0);
  request.sampling.prompt_logprobs = 2;
  const Collected got = kit.run(std::move(request));
  EXPECT_TRUE(got.choices[0].tokens.empty());
  EXPECT_EQ(got.choices[0].finish, FinishReason::kLength);
  ASSERT_EQ(got.prompt_logprobs.size(), 3U);
  EXPECT_EQ(got.prompt_logprobs[0].chosen.token, 5);
  EXPECT_EQ(got.prompt_logprobs[2].chosen.token, 7);
  EXPECT_EQ(got.prompt_logprobs[2].top.size(), 2U);
  EXPECT_EQ(kit.run(kit.request({1}, 0)).choices[0].finish, FinishReason::kLength);
  EXPECT_EQ(kit.run(kit.request({1}, 2)).choices[0].tokens.size(), 2U);
}

TEST(Engine, LogprobsComeOnePerToken) {
  EngineKit kit({});
  EngineRequest request = kit.request({4, 5}, 3);
  request.sampling.logprobs = 1;
  request.sampling.prompt_logprobs = 0;
  const Collected got = kit.run(std::move(request));
  ASSERT_EQ(got.choices[0].logprobs.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got.choices[0].logprobs[i].chosen.token, got.choices[0].tokens[i]);
    EXPECT_EQ(got.choices[0].logprobs[i].top.size(), 1U);
  }
  ASSERT_EQ(got.prompt_logprobs.size(), 1U);
  EXPECT_TRUE(got.prompt_logprobs[0].top.empty());
}

TEST(Engine, ManyRequestsInASmallPoolEqualTheirSoloRuns) {
  EngineKit::Options options;
  options.engine.scheduler.num_blocks = 9;
  options.engine.scheduler.max_model_len = 128;
  EngineKit kit(options);
  std::vector<OutputStream> streams;
  for (int32_t i = 0; i < 12; ++i) {
    streams.push_back(kit.submit(kit.request(std::vector<int32_t>(30, i), 40)));
  }
  for (int32_t i = 0; i < 12; ++i) {
    const Collected got = collect(streams[static_cast<size_t>(i)]);
    std::vector<int32_t> expected;
    for (int32_t at = 30; at < 70; ++at) expected.push_back(kit.token_at(i, at));
    EXPECT_EQ(got.choices[0].tokens, expected);
  }
  EXPECT_GT(kit.engine->stats().num_preemptions, 0);
  EXPECT_EQ(kit.engine->stats().kv_cache_usage, 0.0);
}

TEST(Engine, CancelEndsEarlyAndFrees) {
  EngineKit::Options options;
  options.step_time = 200us;
  EngineKit kit(options);
  OutputStream stream = kit.submit(kit.request({1, 2}, 400));
  std::vector<OutputEvent> events;
  ASSERT_TRUE(stream.wait(events));
  stream.cancel();
  stream.cancel();
  const Collected got = collect(stream);
  EXPECT_EQ(got.choices[0].finish, FinishReason::kAbort);
  EXPECT_LT(got.choices[0].tokens.size(), 400U);
  EXPECT_EQ(kit.engine->stats().kv_cache_usage, 0.0);
  EXPECT_FALSE(stream.take(events));
}

TEST(Engine, RandomDisconnectsLeaveNothingBehind) {
  EngineKit::Options options;
  options.step_time = 50us;
  options.engine.scheduler.max_num_seqs = 8;
  options.engine.scheduler.num_blocks = 32;
  options.engine.scheduler.max_num_batched_tokens = 32;
  EngineKit kit(options);
  std::mt19937 generator(3);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&kit, seed = generator()] {
      std::mt19937 random(seed);
      for (int i = 0; i < 25; ++i) {
        const auto length = 1 + random() % 60;
        EngineRequest request = kit.request(std::vector<int32_t>(length, 1), 100);
        request.n = 1 + static_cast<int32_t>(random() % 3);
        OutputStream stream = kit.submit(std::move(request));
        std::vector<OutputEvent> events;
        for (auto left = random() % 12; left > 0 && stream.wait(events); --left) {
        }
      }  // dropped here: queued, in its prompt or generating
    });
  }
  for (std::thread& client : clients) client.join();
  ASSERT_TRUE(kit.engine->drain(10s));
  const EngineStats stats = kit.engine->stats();
  EXPECT_EQ(stats.num_running, 0);
  EXPECT_EQ(stats.num_waiting, 0);
  EXPECT_EQ(stats.kv_cache_usage, 0.0);
  EXPECT_GT(stats.finished[static_cast<size_t>(FinishReason::kAbort)], 50);
}

TEST(Engine, NotifiesOnceAStepAndNeverAfterItWasTakenAway) {
  EngineKit kit({});
  EngineRequest request = kit.request({1, 2}, 50);
  request.n = 4;
  std::atomic<int> calls{0};
  OutputStream stream = kit.submit(std::move(request));
  stream.set_notify([&calls] { ++calls; });
  Collected got = collect(stream);
  stream.set_notify({});
  const int seen = calls;
  EXPECT_GE(seen, 1);
  EXPECT_LE(seen, static_cast<int>(kit.engine->stats().num_steps) + 1);
  EXPECT_EQ(calls, seen);
}

TEST(Engine, IdleTakesNoProcessorTime) {
  EngineKit kit({});
  kit.run(kit.request({1}, 2));
  const auto used = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_sec * 1'000'000 + usage.ru_stime.tv_usec;
  };
  const auto before = used();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(used() - before, 10'000);
}

}  // namespace
}  // namespace quire::engine
