#include "quire/bench/load/serve_report.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

namespace quire::bench {
namespace {

StreamRecord read(std::initializer_list<std::pair<double, const char*>> events, double sent_s,
                  double done_s) {
  StreamRecord record;
  record.sent_s = sent_s;
  StreamReader reader;
  for (const auto& [time, data] : events) reader.take(data, time, record);
  record.done_s = done_s;
  reader.finish(record);
  return record;
}

constexpr const char* kUsage = R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,)"
                               R"("prompt_tokens_details":{"cached_tokens":5}}})";

TEST(StreamReader, ReadsCompletions) {
  const StreamRecord record =
      read({{1.5, R"({"choices":[{"text":"a","finish_reason":null}]})"},
            {1.6, R"({"choices":[{"text":"","finish_reason":null}]})"},
            {1.9, R"({"choices":[{"text":"bc","finish_reason":"length"}]})"},
            {1.9, kUsage},
            {1.9, "[DONE]"}},
           1.0, 2.0);
  EXPECT_TRUE(record.ok()) << record.error;
  EXPECT_EQ(record.token_times_s, (std::vector<double>{1.5, 1.9}));
  EXPECT_EQ(record.output_tokens, 4);
  EXPECT_EQ(record.prompt_tokens, 9);
  EXPECT_EQ(record.cached_tokens, 5);
}

TEST(StreamReader, ReadsChatsAndCountsEventsWithoutUsage) {
  const StreamRecord record =
      read({{1.5, R"({"choices":[{"delta":{"role":"assistant","content":""}}]})"},
            {1.7, R"({"choices":[{"delta":{"content":"x"}}]})"},
            {1.8, R"({"choices":[{"delta":{"reasoning_content":"y"}}]})"},
            {1.9, "[DONE]"}},
           1.0, 2.0);
  EXPECT_TRUE(record.ok()) << record.error;
  EXPECT_NEAR(record.ttft_s(), 0.7, 1e-9);
  EXPECT_EQ(record.output_tokens, 2);
}

TEST(StreamReader, SaysWhatFailed) {
  EXPECT_EQ(read({{1, R"({"error":{"message":"full"}})"}, {1, "[DONE]"}}, 0, 1).error, "full");
  EXPECT_EQ(read({{1, R"({"choices":[{"text":"a"}]})"}}, 0, 1).error,
            "the stream ended before [DONE]");
  EXPECT_EQ(read({{1, "[DONE]"}}, 0, 1).error, "the answer brought no token");
  EXPECT_EQ(read({{1, "{"}}, 0, 1).error, "an event that is no JSON object");
}

StreamRecord record(double sent_s, std::vector<double> times_s, int64_t output_tokens) {
  StreamRecord out;
  out.sent_s = sent_s;
  out.done_s = times_s.back();
  out.token_times_s = std::move(times_s);
  out.prompt_tokens = 10;
  out.output_tokens = output_tokens;
  return out;
}

TEST(ServeReport, CountsOnlyWhatEnded) {
  StreamRecord failed = record(0, {4}, 100);
  failed.error = "status 429: full";
  const std::vector<StreamRecord> records = {record(0, {1, 1.5, 2}, 3), record(1, {1.2}, 1),
                                             failed};
  const ServeReport report = make_report(records);
  EXPECT_EQ(report.num_failed, 1);
  EXPECT_DOUBLE_EQ(report.duration_s, 4);
  EXPECT_DOUBLE_EQ(report.requests_per_s(), 0.5);
  EXPECT_DOUBLE_EQ(report.output_tokens_per_s(), 1);
  EXPECT_DOUBLE_EQ(report.total_tokens_per_s(), 6);
  EXPECT_NEAR(report.ttft.mean, 600, 1e-9);
  EXPECT_NEAR(report.tpot.mean, 500, 1e-9);  // the answer of one token has none
  EXPECT_NEAR(report.itl.max, 500, 1e-9);
  EXPECT_NEAR(report.e2e.p50, 1100, 1e-9);
  const boost::json::object json = report_json(report);
  EXPECT_EQ(json.at("completed").as_int64(), 2);
  EXPECT_NEAR(json.at("mean_ttft_ms").as_double(), 600, 1e-9);
  EXPECT_EQ(json.at("errors").as_object().at("status 429: full").as_int64(), 1);
  EXPECT_NE(format_report(report).find("1 times: status 429"), std::string::npos);
}

}  // namespace
}  // namespace quire::bench
