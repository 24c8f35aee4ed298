// Text as clients see it: stop strings across tokens, whole code points, what a stop token shows.
#include <gtest/gtest.h>

#include <memory>

#include "quire/engine/engine_test_kit.h"

namespace quire::engine {
namespace {

using Deltas = std::vector<std::string>;

/// Ten tokens; 6 to 9 are the bytes F0 9F 98 80 of an emoji in the byte-level alphabet.
std::unique_ptr<text::Tokenizer> tiny_tokenizer() {
  text::TokenizerSpec spec;
  spec.vocab = {"ABC", "DEF", "GHI", "JKL", "X", "<end>", "\u00f0", "\u0141", "\u013a", "\u0122"};
  spec.added_tokens = {{.id = 5, .content = "<end>", .special = true}};
  spec.pre_tokenizers.emplace_back();  // byte level
  return std::make_unique<text::Tokenizer>(std::move(spec));
}

class EngineText : public testing::Test {
 protected:
  /// Runs a request whose output is `script`.
  CollectedChoice run(std::vector<int32_t> script, std::vector<std::string> stop,
                      const std::function<void(EngineRequest&)>& change = {}) {
    EngineKit::Options options;
    options.engine.vocab_size = 10;
    options.engine.eos_token_ids = {5};
    options.tokenizer = tokenizer_.get();
    options.next_token = [&script](const sched::RowStart&, int32_t position) {
      return script[static_cast<size_t>(position - 1)];
    };
    EngineKit kit(options);
    EngineRequest request = kit.request({4}, static_cast<int32_t>(script.size()));
    request.stop = std::move(stop);
    if (change) change(request);
    return kit.run(std::move(request), tokenizer_.get()).choices[0];
  }

  std::unique_ptr<text::Tokenizer> tokenizer_ = tiny_tokenizer();
};

// Field report 2, exactly: "ABC", then part of the stop string DEFGHIJ.
TEST_F(EngineText, AStopStringAcrossTokensNeverShows) {
  const CollectedChoice got = run({0, 1, 2, 3, 4, 4}, {"DEFGHIJ"});
  EXPECT_EQ(got.deltas, Deltas{"ABC"});
  EXPECT_EQ(got.tokens, (std::vector<int32_t>{0, 1, 2, 3}));  // none is made past the stop
  EXPECT_EQ(got.finish, FinishReason::kStop);
  EXPECT_EQ(got.stop_string, "DEFGHIJ");
}

TEST_F(EngineText, HeldTextIsShownWhenTheMatchFails) {
  const CollectedChoice got = run({0, 1, 2, 4}, {"DEFGHIJ"});
  EXPECT_EQ(got.deltas, (Deltas{"ABC", "DEFGHIX"}));
  EXPECT_EQ(got.finish, FinishReason::kLength);
}

TEST_F(EngineText, HeldTextIsShownAtTheEnd) {
  EXPECT_EQ(run({0, 1, 2}, {"DEFGHIJ"}).deltas, (Deltas{"ABC", "DEFGHI"}));
  const CollectedChoice stopped = run({0, 1, 5, 4}, {"DEFGHIJ"});
  EXPECT_EQ(stopped.deltas, (Deltas{"ABC", "DEF"}));
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  EXPECT_FALSE(stopped.stop_string.has_value());
}

TEST_F(EngineText, TheStopMayBeIncluded) {
  const CollectedChoice got = run({0, 1, 2, 3}, {"CD", "FG"}, [](EngineRequest& request) {
    request.include_stop_str_in_output = true;
  });
  EXPECT_EQ(got.text(), "ABCD");
  EXPECT_EQ(got.stop_string, "CD");
}

TEST_F(EngineText, NoStopStringBeforeMinTokens) {
  const CollectedChoice got =
      run({0, 4, 0, 0}, {"ABC"}, [](EngineRequest& request) { request.sampling.min_tokens = 2; });
  EXPECT_EQ(got.text(), "ABCX");
  EXPECT_EQ(got.tokens.size(), 3U);
}

TEST_F(EngineText, AStopTokenIsNotShownUnlessAsked) {
  EXPECT_EQ(run({0, 3, 4}, {}, [](EngineRequest& r) { r.sampling.stop_token_ids = {3}; }).text(),
            "ABC");
  EXPECT_EQ(run({0, 3, 4}, {},
                [](EngineRequest& r) {
                  r.sampling.stop_token_ids = {3};
                  r.include_stop_str_in_output = true;
                })
                .text(),
            "ABCJKL");
  EXPECT_EQ(
      run({0, 3, 4}, {"none"}, [](EngineRequest& r) { r.sampling.stop_token_ids = {3}; }).text(),
      "ABC");
}

TEST_F(EngineText, CodePointsStayWholeWithAndWithoutStops) {
  for (const std::vector<std::string>& stop :
       {Deltas{}, Deltas{"zzz"}, Deltas{"\xF0\x9F\x98\x81"}}) {
    EXPECT_EQ(run({4, 6, 7, 8, 9, 0}, stop).deltas, (Deltas{"X", "\xF0\x9F\x98\x80", "ABC"}));
    // Bytes that never become whole are replaced at the end.
    EXPECT_EQ(run({4, 6, 7, 8}, stop).deltas, (Deltas{"X", "\uFFFD"}));
  }
}

TEST(EngineTextRefuses, StopStringsWithoutATokenizer) {
  EngineKit kit({});
  EngineRequest request = kit.request({1}, 1);
  request.stop = {"x"};
  Result<OutputStream> result = kit.engine->submit(std::move(request));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().param, "stop");
}

}  // namespace
}  // namespace quire::engine
