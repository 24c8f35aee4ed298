// Templates that ask for too much: each must end in an Error (or a LoadError), soon, and with
// bounded memory.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "quire/base/error.h"
#include "quire/text/chat_template.h"

namespace quire::text {
namespace {

std::string repeated(std::string_view piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

/// The error's message; fails when the template renders.
std::string error_of(const std::string& source, const RenderBudget& budget = {},
                     const Value::Dict& variables = {}) {
  const auto start = std::chrono::steady_clock::now();
  const Result<std::string> result = ChatTemplate(source, "bomb").render(variables, budget);
  const auto seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 5.0) << source.substr(0, 200);
  EXPECT_FALSE(result.ok()) << source.substr(0, 200);
  return result.ok() ? "" : result.error().message;
}

void expect_budget(const std::string& source, const std::string& unit) {
  // Time would end most bombs on a slow machine; here each shall meet its own bound.
  RenderBudget budget;
  budget.max_time_ms = 60'000;
  const std::string message = error_of(source, budget);
  EXPECT_NE(message.find("budget of"), std::string::npos) << message;
  EXPECT_NE(message.find(unit), std::string::npos) << source.substr(0, 200) << "\n" << message;
}

TEST(ChatTemplateBudget, Operations) {
  expect_budget("{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}",
                "operations");
  expect_budget("{% for a in range(99999) %}{% set x = range(99999)|list %}{% endfor %}",
                "operations");
  expect_budget(
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
      "operations");
  expect_budget(
      "{{ range(99999)|map('string')|map('upper')|map('lower')|sort|join(',')|list|sort|length }}",
      "operations");
  EXPECT_NE(error_of("{% for x in range(100) %}{% endfor %}", {.max_operations = 50})
                .find("50 operations"),
            std::string::npos);
}

TEST(ChatTemplateBudget, Memory) {
  expect_budget("{{ ('a' * 10**9)|length }}", "memory");
  expect_budget("{{ ([1] * 10**9)|length }}", "memory");
  expect_budget("{{ ('abc' * 9223372036854775807)|length }}", "memory");
  expect_budget(
      "{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(40) %}"
      "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "memory");
  expect_budget("{% set a = 'x' * 60000 %}{{ a.replace('x', a)|length }}", "memory");
  expect_budget("{% set a = 'x' * 60000 %}{{ a.replace('', a)|length }}", "memory");
  expect_budget("{{ (['x' * 100000] * 10000)|join('y')|length }}", "memory");
  expect_budget("{{ ('a' * 1000000).join('bcdefghijk' * 10)|length }}", "memory");
  expect_budget("{{ '%1000000000d' % 1 }}", "memory");
  expect_budget("{{ '{:1000000000}'.format(1) }}", "memory");
  expect_budget("{{ 'x'.center(10**12) }}", "memory");
  expect_budget("{{ 'x'|center(10**12) }}", "memory");
  expect_budget("{{ 'x'.zfill(10**15) }}", "memory");
  expect_budget("{{ '\\t'.expandtabs(10**12) }}", "memory");
  expect_budget("{{ 'x'|indent(10**12, true) }}", "memory");
  expect_budget("{{ [1]|batch(10**12, 'x')|list }}", "memory");
  expect_budget("{{ [1]|slice(10**12)|list }}", "memory");
  expect_budget("{{ (['x' * 1000000] * 100)|tojson }}", "memory");
  expect_budget("{{ (['x' * 1000000] * 100)|string }}", "memory");
}

TEST(ChatTemplateBudget, Output) {
  expect_budget("{% set a = 'x' * 1000000 %}{% for i in range(100) %}{{ a }}{% endfor %}", "bytes");
  expect_budget("{% set a = 'x' * 9000000 %}{{ a }}", "bytes");
  EXPECT_NE(error_of("{{ 'x' * 100 }}", {.max_output_bytes = 10}).find("10 bytes"),
            std::string::npos);
}

TEST(ChatTemplateBudget, Time) {
  RenderBudget budget;
  budget.max_operations = int64_t{1} << 60;
  budget.max_time_ms = 30;
  EXPECT_NE(
      error_of("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
               budget)
          .find("30 ms"),
      std::string::npos);
}

TEST(ChatTemplateBudget, Depth) {
  expect_budget("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "levels");
  expect_budget(
      "{% macro a(x) %}{{ b(x) }}{% endmacro %}{% macro b(x) %}{{ a(x) }}{% endmacro %}{{ a(1) }}",
      "levels");
  expect_budget("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
                "levels");
  expect_budget(
      "{% set ns = namespace() %}{% set ns.x = [] %}{% for i in range(500) %}{% set ns.x = [ns.x] "
      "%}"
      "{% endfor %}{{ ns.x }}",
      "levels");
  expect_budget(
      "{% set ns = namespace() %}{% set ns.x = [] %}{% for i in range(500) %}{% set ns.x = [ns.x] "
      "%}"
      "{% endfor %}{{ ns.x|tojson }}",
      "levels");
  expect_budget("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}", "levels");
  expect_budget("{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}", "levels");
}

/// Every macro nests its call as deeply as the parser allows.
TEST(ChatTemplateBudget, DepthOfTheEvaluatorItself) {
  const std::string deep = repeated("{% if true %}", 45) + "{{ " + repeated("(0, ", 40) + "m()" +
                           repeated(")", 40) + " }}" + repeated("{% endif %}", 45);
  EXPECT_NE(error_of("{% macro m() %}" + deep + "{% endmacro %}{{ m() }}").find("nest"),
            std::string::npos);
}

TEST(ChatTemplateBudget, LongChainsOfValuesAreFreed) {
  const Result<std::string> result = ChatTemplate(
                                         "{% set ns = namespace(x=none) %}{% for i in range(50000) "
                                         "%}{% set ns.x = [ns.x] %}{% endfor %}ok",
                                         "chain")
                                         .render({});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(*result, "ok");
}

TEST(ChatTemplateBudget, GarbageIsNotCounted) {
  // 1,500 texts of 100 kB, one alive at a time.
  RenderBudget budget;
  budget.max_operations = 100'000'000;
  budget.max_time_ms = 60'000;
  const ChatTemplate chat_template(
      "{% set ns = namespace(s='') %}{% for i in range(1500) %}{% set ns.s = 'x' * 100000 %}{% "
      "endfor %}{{ ns.s|length }}",
      "garbage");
  const Result<std::string> result = chat_template.render({}, budget);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(*result, "100000");
}

TEST(ChatTemplateBudget, SlowSearchesAreCharged) {
  expect_budget("{% set a = 'a' * 4000000 %}{% set b = 'a' * 2000000 ~ 'b' %}{{ b in a }}",
                "operations");
  expect_budget("{% set a = 'a' * 4000000 %}{{ a.strip('b' * 1000000 ~ 'a')|length }}",
                "operations");
}

TEST(ChatTemplateBudget, DeepSourcesDoNotParse) {
  for (const std::string& source :
       {"{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}",
        "{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}",
        "{{ " + repeated("-", 100000) + "1 }}", "{{ " + repeated("not ", 100000) + "1 }}",
        "{{ 1" + repeated(" + 1", 100000) + " }}", "{{ a" + repeated(".a", 100000) + " }}",
        "{{ a" + repeated("|upper", 100000) + " }}", "{{ a" + repeated("()", 100000) + " }}",
        "{{ 1" + repeated(" if 1 else 1", 80000) + " }}",
        "{{ a" + repeated(" is defined", 80000) + " }}", repeated("{% if 1 %}", 100000),
        repeated("{% for x in y %}", 60000), repeated("{% macro m() %}", 60000),
        "{% set " + repeated("(", 100000) + "a = 1 %}"}) {
    EXPECT_THROW(ChatTemplate(source, "deep"), LoadError) << source.substr(0, 40);
  }
}

TEST(ChatTemplateBudget, LongFlatSourcesParse) {
  EXPECT_NO_THROW(
      ChatTemplate(repeated("{% if x %}a{% elif y %}b{% endif %}{{ x }}", 20000), "flat"));
  EXPECT_NO_THROW(ChatTemplate(
      "{% if x %}" + repeated("{% elif y %}{% set z = 1 %}", 30000) + "{% endif %}", "flat"));
  EXPECT_NO_THROW(ChatTemplate("{{ [" + repeated("1, ", 200000) + "] }}", "flat"));
  EXPECT_NO_THROW(ChatTemplate("{{ a" + repeated(" ~ a", 100000) + " }}", "flat"));
}

}  // namespace
}  // namespace quire::text
