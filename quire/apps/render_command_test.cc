#include "quire/apps/render_command.h"

#include <gtest/gtest.h>

#include <sstream>

namespace quire::apps {
namespace {

const text::ChatTemplate& sample() {
  static const text::ChatTemplate chat_template(
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'bad' %}{{ raise_exception('bad "
      "\"role\"') }}"
      "{% endif %}{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}>{% endif %}",
      "sample");
  return chat_template;
}

TEST(RenderCommand, PrintsThePromptAndNothingElse) {
  std::istringstream in(R"({"messages": [{"role": "user", "content": "héllo"}]})");
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(run_render(in, out, errors, sample(), {{"bos_token", "<s>"}}), 0);
  EXPECT_EQ(out.str(), "<s>héllo\n>");
  EXPECT_EQ(errors.str(), "");
}

TEST(RenderCommand, FailsWithTheTemplatesMessage) {
  std::istringstream in(R"({"messages": [{"role": "bad"}]})");
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(run_render(in, out, errors, sample(), {}), 1);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(errors.str(), "bad \"role\"\n");
}

TEST(RenderCommand, AnswersEachLine) {
  std::istringstream in(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"add_generation_prompt\": "
      "false}\n"
      "\n"
      "{\"messages\": [{\"role\": \"bad\"}]}\n"
      "{\"messages\": [}\n"
      "{\"messages\": [], \"chat_template_kwargs\": {\"bos_token\": \"\\u00e9\\n\"}}\n");
  std::ostringstream out;
  EXPECT_EQ(run_render_jsonl(in, out, sample(), {{"bos_token", "<s>"}}), 0);
  std::istringstream lines(out.str());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, R"({"text":"<s>a\n"})");
  std::getline(lines, line);
  EXPECT_EQ(line, R"({"error":"bad \"role\""})");
  std::getline(lines, line);
  EXPECT_EQ(line.find(R"({"error":"the request is no JSON)"), 0U) << line;
  std::getline(lines, line);
  EXPECT_EQ(line, R"({"text":"é\n>"})");
  EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace quire::apps
