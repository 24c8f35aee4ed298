#include "quire/bench/load/sse_parser.h"

#include <gtest/gtest.h>

namespace quire::bench {
namespace {

using Events = std::vector<std::string>;

constexpr std::string_view kStream =
    ": a comment\r\n\r\ndata: {\"a\": 1}\n\nevent: x\rdata:two\rdata:  lines\r\rid: 4\n\ndata\n\n"
    "data: [DONE]\r\n\r\ndata: not ended\n";
const Events kEvents = {"{\"a\": 1}", "two\n lines", "", "[DONE]"};

TEST(SseParser, TakesAStreamAtOnce) {
  Events events;
  SseParser().feed(kStream, events);
  EXPECT_EQ(events, kEvents);
}

TEST(SseParser, TakesAStreamCutAnywhere) {
  for (size_t step = 1; step < kStream.size(); ++step) {
    SseParser parser;
    Events events;
    for (size_t at = 0; at < kStream.size(); at += step) {
      parser.feed(kStream.substr(at, step), events);
    }
    EXPECT_EQ(events, kEvents) << "in pieces of " << step;
  }
}

}  // namespace
}  // namespace quire::bench
