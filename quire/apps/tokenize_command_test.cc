#include "quire/apps/tokenize_command.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "quire/text/tokenizer/tiny_spec.h"

namespace quire::apps {
namespace {

std::string run(const std::string& lines, int expected_code) {
  text::TokenizerSpec spec = text::tiny_spec({{"a", "b"}});
  spec.prefix_ids = {text::add_token(spec, "<s>", true).id};
  const text::Tokenizer tokenizer(spec);
  std::istringstream in(lines);
  std::ostringstream out;
  EXPECT_EQ(run_tokenize(in, out, tokenizer), expected_code);
  return out.str();
}

TEST(TokenizeCommand, WritesALineForEachRequest) {
  EXPECT_EQ(run("{\"text\": \"ab<s>\"}\n"
                "{\"text\": \"ab\", \"add_special_tokens\": false}\n"
                "{\"text\": \"<s>\", \"add_special_tokens\": false, \"parse_special\": false}\n"
                "{\"text\": \"\", \"add_special_tokens\": false}\n"
                "{\"ids\": [257, 256, 255]}\n"
                "{\"ids\": [257, 256], \"skip_special_tokens\": true}",
                0),
            "[257,256,257]\n[256]\n[60,115,62]\n[]\n\"<s>ab\uFFFD\"\n\"ab\"\n");
}

TEST(TokenizeCommand, ALineInErrorDoesNotStopTheOthers) {
  const std::string out =
      run("{\n[]\n{}\n{\"text\": 3}\n{\"ids\": [-1]}\n{\"text\": \"a\", "
          "\"add_special_tokens\": 1}\n{\"text\": \"ab\"}\n",
          1);
  std::istringstream lines(out);
  std::string line;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line.find("{\"error\":\""), 0u) << line;
  }
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "[257,256]");
}

}  // namespace
}  // namespace quire::apps
