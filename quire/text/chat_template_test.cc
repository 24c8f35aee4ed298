#include "quire/text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "quire/base/error.h"

namespace quire::text {
namespace {

Value::Dict sample() {
  return {{"n", int64_t{7}},
          {"text", "The fox"},
          {"xs", Value::List{int64_t{3}, int64_t{1}, int64_t{2}}},
          {"d", Value::Dict{{"b", int64_t{1}}, {"a", Value::List{true, Value(), 2.5}}}},
          {"none_value", Value()}};
}

std::string rendered(std::string_view source, const Value::Dict& variables = sample()) {
  const Result<std::string> result = ChatTemplate(source, "test").render(variables);
  return result ? result.value() : "error: " + result.error().message;
}

struct Case {
  const char* source;
  const char* expected;
};

/// Expectations are what Python's jinja2 prints.
void expect_all(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(rendered(c.source), c.expected) << c.source;
}

TEST(ChatTemplate, PrintsValuesAsPythonDoes) {
  expect_all(
      {{"{{ n }} {{ text }} {{ xs }} {{ d }}",
        "7 The fox [3, 1, 2] {'b': 1, 'a': [True, None, 2.5]}"},
       {"{{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1e22 }}",
        "1.0 1e+16 1e-05 0.30000000000000004 1e+22"},
       {"{{ [\"it's\", 'say \"hi\"'] }} {{ (1,) }} {{ () }}", "[\"it's\", 'say \"hi\"'] (1,) ()"},
       {"{{ missing }}|{{ none_value }}", "|None"}});
}

TEST(ChatTemplate, ComputesAsPythonDoes) {
  expect_all(
      {{"{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** -1 }} {{ 7.5 // -2 }}",
        "-4 2 3.5 0.5 -4.0"},
       {"{{ 1 < 2 < 3 }} {{ 1 == 1.0 == true }} {{ 'fox' in text }} {{ 9 not in xs }}",
        "True True True True"},
       {"{{ 0 or '' or 5 }} {{ n and text }} {{ 'a' ~ 1 ~ none }} {{ 2 * 'ab' }}",
        "5 The fox a1None abab"},
       {"{{ text[::-1] }} {{ xs[1:] }} {{ xs[-1] }} {{ text[-3:] }}", "xof ehT [1, 2] 2 fox"}});
}

TEST(ChatTemplate, LooksUpAttributesAndItems) {
  expect_all(
      {{"{{ d.b }}{{ d['a'][2] }}{{ d.missing }}|{{ d.get('z', 4) }}", "12.5|4"},
       {"{{ d.items() }}", "dict_items([('b', 1), ('a', [True, None, 2.5])])"},
       {"{{ d.missing.deeper }}",
        "error: chat template, line 1: 'dict object' has no attribute 'missing'"},
       {"{{ missing.x }}", "error: chat template, line 1: 'missing' is undefined"},
       {"{{ xs.append(1) }}",
        "error: chat template, line 1: access to attribute 'append' of 'list' object is unsafe."}});
}

TEST(ChatTemplate, ControlsWhitespace) {
  expect_all({{"a\n  {% if n %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"},
              {"a  {%- if n -%}  b  {%- endif -%}  c", "abc"},
              {"{%+ if n %} x {% endif +%}\ny", " x \ny"},
              {"{{ n }}\n\n", "7\n"},
              {"{# gone #}\nx{#- y -#} z", "xz"},
              {"{% raw %}{{ n }}{% endraw %}", "{{ n }}"}});
}

TEST(ChatTemplate, RunsLoops) {
  expect_all(
      {{"{% for x in xs %}{{ loop.index }}{{ x }}{{ loop.last }} {% endfor %}",
        "13False 21False 32True "},
       {"{% for x in xs if x > 1 %}{{ x }}{{ loop.length }}{% else %}none{% endfor %}", "3222"},
       {"{% for x in [] %}x{% else %}none{% endfor %}", "none"},
       {"{% for x in range(9) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}"
        "{% endif %}{{ x }}{% endfor %}",
        "023"},
       {"{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", "b1a[True, None, 2.5]"},
       {"{% for x in xs %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% "
        "endfor %}",
        "1a;32b;1a;"},
       {"{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x "
        "}}"
        "{% endif %}{% endfor %}",
        "(1(2))3"}});
}

TEST(ChatTemplate, ScopesNamesAsJinjaDoes) {
  expect_all(
      {{"{% set x = 1 %}{% for i in xs %}{% set x = i %}{% endfor %}{{ x }}", "1"},
       {"{% set ns = namespace(x=0) %}{% for i in xs %}{% set ns.x = ns.x + i %}{% endfor %}{{ "
        "ns.x }}",
        "6"},
       {"{% if n %}{% set y = 2 %}{% endif %}{{ y }}", "2"},
       // A name assigned later at the top level is unset in a loop before it, whatever the request
       // says.
       {"{% for i in [1] %}[{{ text }}]{% endfor %}{% set text = 'late' %}{{ text }}", "[]late"},
       {"{% set n %}<{{ n }}>{% endset %}{{ n }}", "<>"},
       {"{% macro f() %}{{ late }}{% endmacro %}{{ f() }}{% set late = 1 %}{{ f() }}", "1"},
       {"{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}", "87"}});
}

TEST(ChatTemplate, CallsMacros) {
  expect_all(
      {{"{% macro m(a, b='B') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(b=2, a=1) }}{{ m() }}",
        "[1B][12][B]"},
       {"{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, k=2) }}", "(1,){'k': 2}"},
       {"{% macro w(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}"
        "{% call(x) w(xs) %}<{{ x }}>{% endcall %}",
        "<3><1><2>"},
       {"{% filter upper %}a{{ text }}{% endfilter %}{% set s | trim %} x {% endset %}{{ s }}",
        "ATHE FOXx"},
       {"{% generation %}{{ n }}{% endgeneration %}", "7"}});
}

TEST(ChatTemplate, AppliesFiltersAndTests) {
  expect_all(
      {{"{{ xs|sort|join('-') }} {{ xs|map('string')|list }} {{ xs|select('odd')|list }}",
        "1-2-3 ['3', '1', '2'] [3, 1]"},
       {"{{ d|tojson }} {{ xs|tojson(indent=2) }}",
        "{\"b\": 1, \"a\": [true, null, 2.5]} [\n  3,\n  1,\n  2\n]"},
       {"{{ missing|default('x') }} {{ ''|d('y', true) }} {{ '<é>'|tojson }}", "x y \"<é>\""},
       {"{{ n is odd }} {{ text is string }} {{ d is mapping }} {{ missing is defined }} {{ n is "
        "divisibleby 7 }}",
        "True True True False True"},
       {"{{ 'straße'|upper }} {{ 'ΑΣ'.lower() }} {{ 'héé'|length }} {{ '日本'[1] }}",
        "STRASSE ας 3 本"},
       {"{{ '%05.1f|%s' % (3.14159, xs) }} {{ '{:>4}|{!r}'.format(n, 'q') }}",
        "003.1|[3, 1, 2]    7|'q'"}});
}

TEST(ChatTemplate, RaisesTheTemplatesOwnMessageVerbatim) {
  const Result<std::string> result =
      ChatTemplate("{{ raise_exception('Roles must alternate: ' ~ n) }}", "test").render(sample());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(result.error().message, "Roles must alternate: 7");
}

TEST(ChatTemplate, TakesTheTimeFromTheBudget) {
  setenv("TZ", "UTC", 1);
  RenderBudget budget;
  budget.now_unix_s = 1'753'920'000;  // 2025-07-31
  const ChatTemplate chat_template("{{ strftime_now('%d %b %Y') }}", "test");
  EXPECT_EQ(chat_template.render({}, budget).value(), "31 Jul 2025");
}

TEST(ChatTemplate, TellsWhatItReads) {
  const ChatTemplate chat_template("{% for t in tools %}{{ t }}{% endfor %}{{ a.b }}", "test");
  EXPECT_TRUE(chat_template.mentions("tools"));
  EXPECT_TRUE(chat_template.mentions("a"));
  EXPECT_FALSE(chat_template.mentions("b"));
  EXPECT_FALSE(chat_template.mentions("messages"));
}

TEST(ChatTemplate, LoadErrorNamesTheLine) {
  for (const auto& [source, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a\n{{ n + }}", "f: chat template, line 2: unexpected end of print statement"},
           {"{% if n %}\nx",
            "f: chat template, line 2: Unexpected end of template. Jinja was looking for the tag "
            "'endif'."},
           {"\n\n{% nope %}", "f: chat template, line 3: Encountered unknown tag 'nope'."},
           {"{{ n|nope }}", "f: chat template, line 1: No filter named 'nope'."},
           {"{# x", "f: chat template, line 1: Missing end of comment tag"},
           {"{% break %}", "f: chat template, line 1: 'break' outside loop"},
           {"{% include 'x' %}",
            "f: chat template, line 1: the tag 'include' is not supported in chat templates"}}) {
    try {
      const ChatTemplate chat_template(source, "f");
      ADD_FAILURE() << source;
    } catch (const LoadError& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

TEST(ChatTemplate, RejectsSourcesThatAreNoText) {
  EXPECT_THROW(ChatTemplate("\xff", "f"), LoadError);
  EXPECT_THROW(ChatTemplate(std::string((1 << 20) + 1, 'x'), "f"), LoadError);
}

TEST(ChatTemplate, RendersFromSeveralThreadsAtOnce) {
  const ChatTemplate chat_template(
      "{% for x in xs %}{{ 'item ' ~ x ~ ['k', {'a': 'b'}] }}{% endfor %}{{ 'é'|length }}", "test");
  const std::string expected = chat_template.render(sample()).value();
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (size_t i = 0; i < equal.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 200; ++k) equal[i] += chat_template.render(sample()).value() == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : equal) EXPECT_EQ(count, 200);
}

TEST(Value, FindsKeysOfDictsOnly) {
  const Value dict(Value::Dict{{"a", int64_t{1}}});
  ASSERT_NE(dict.find("a"), nullptr);
  EXPECT_EQ(dict.find("a")->as_int(), 1);
  EXPECT_EQ(dict.find("b"), nullptr);
  EXPECT_EQ(Value("text").find("a"), nullptr);
}

}  // namespace
}  // namespace quire::text
