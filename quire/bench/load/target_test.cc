#include "quire/bench/load/target.h"

#include <gtest/gtest.h>

#include "quire/base/error.h"

namespace quire::bench {
namespace {

std::string parts(const std::string& url) {
  const Target target = parse_target(url);
  return std::string(target.tls ? "tls " : "") + target.host + " " + target.port + " " +
         target.path;
}

TEST(Target, ReadsUrls) {
  EXPECT_EQ(parts("http://127.0.0.1:8000"), "127.0.0.1 8000 ");
  EXPECT_EQ(parts("localhost:8000/"), "localhost 8000 ");
  EXPECT_EQ(parts("https://example.org/api/v1/"), "tls example.org 443 /api");
  EXPECT_EQ(parts("http://[::1]:81/v1"), "::1 81 ");
  EXPECT_EQ(parse_target("http://[::1]:81").authority(), "[::1]:81");
  EXPECT_EQ(parse_target("https://example.org").authority(), "example.org");
}

TEST(Target, RefusesWhatIsNoUrl) {
  for (const char* url : {"", "http://", "ftp://host", "http://host:port", "http://[::1",
                          "http://[::1]80", "http://user@host", "http://host/?q=1"}) {
    EXPECT_THROW(parse_target(url), LoadError) << url;
  }
}

}  // namespace
}  // namespace quire::bench
