#include "quire/text/chat_template/tests.h"

#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/sequence.h"
#include "quire/text/chat_template/text_form.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

using Check = bool (*)(const Datum&);

/// A test without arguments on the value alone.
template <Check check>
bool plain(Runtime&, const Datum& input, const Arguments& arguments) {
  if (!arguments.positional.empty() || !arguments.keyword.empty()) {
    throw RenderError("the test takes no arguments");
  }
  return check(input);
}

const Datum& only_argument(const Arguments& arguments) {
  if (arguments.positional.size() + arguments.keyword.size() != 1) {
    throw RenderError("the test takes one argument");
  }
  return arguments.positional.empty() ? arguments.keyword.front().second
                                      : arguments.positional.front();
}

template <CompareOp op>
bool compared(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return compare(runtime, op, input, only_argument(arguments));
}

bool is_defined(const Datum& v) {
  return !v.is_undefined();
}
bool is_undefined(const Datum& v) {
  return v.is_undefined();
}
bool is_none(const Datum& v) {
  return v.is_none();
}
bool is_boolean(const Datum& v) {
  return v.is(Type::kBool);
}
bool is_literally_true(const Datum& v) {
  return v.is(Type::kBool) && v.as_bool();
}
bool is_literally_false(const Datum& v) {
  return v.is(Type::kBool) && !v.as_bool();
}
bool is_integer(const Datum& v) {
  return v.is(Type::kInt);
}
bool is_float(const Datum& v) {
  return v.is(Type::kFloat);
}
bool is_number(const Datum& v) {
  return v.is_number();
}
bool is_string(const Datum& v) {
  return v.is_string();
}
bool is_mapping(const Datum& v) {
  return v.is(Type::kDict);
}
bool is_escaped(const Datum& v) {
  return v.is_string() && is_markup(v);
}

bool has_length_and_items(const Datum& v) {
  switch (v.type()) {
    case Type::kUndefined:
    case Type::kString:
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
    case Type::kRange:
      return true;
    default:
      return false;
  }
}

bool is_callable(const Datum& v) {
  switch (v.type()) {
    case Type::kUndefined:  // jinja's Undefined has a __call__, which raises
    case Type::kBuiltin:
    case Type::kMacro:
    case Type::kMethod:
    case Type::kLoop:
    case Type::kJoiner:
      return true;
    default:
      return false;
  }
}

bool can_iterate(const Datum& v) {
  return is_iterable(v) || v.is(Type::kLoop);
}

/// str.islower or str.isupper: a cased character, and none of the other case.
bool all_of_case(Runtime& runtime, const Datum& input, bool lower) {
  const std::string text = to_str(runtime, input);
  bool any = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = decode_utf8(text, position);
    if (is_titlecase(c) || (lower ? is_upper(c) : is_lower(c))) return false;
    any = any || is_cased(c);
  }
  return any;
}

bool test_lower(Runtime& runtime, const Datum& input, const Arguments&) {
  return all_of_case(runtime, input, true);
}

bool test_upper(Runtime& runtime, const Datum& input, const Arguments&) {
  return all_of_case(runtime, input, false);
}

bool rest_is(Runtime& runtime, const Datum& input, const Datum& divisor, int64_t rest) {
  return is_equal(runtime, binary(runtime, BinaryOp::kMod, input, divisor), Datum::integer(rest));
}

bool test_odd(Runtime& runtime, const Datum& input, const Arguments&) {
  return rest_is(runtime, input, Datum::integer(2), 1);
}

bool test_even(Runtime& runtime, const Datum& input, const Arguments&) {
  return rest_is(runtime, input, Datum::integer(2), 0);
}

bool test_divisible(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return rest_is(runtime, input, only_argument(arguments), 0);
}

bool test_same_as(Runtime&, const Datum& input, const Arguments& arguments) {
  return input.same_as(only_argument(arguments));
}

bool test_in(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return contains(runtime, only_argument(arguments), input);
}

bool test_filter(Runtime&, const Datum& input, const Arguments&) {
  return input.is_string() && find_filter(text_of(input)) != nullptr;
}

bool test_test(Runtime&, const Datum& input, const Arguments&) {
  return input.is_string() && find_test(text_of(input)) != nullptr;
}

constexpr Test kTests[] = {
    {"defined", plain<is_defined>},
    {"undefined", plain<is_undefined>},
    {"none", plain<is_none>},
    {"boolean", plain<is_boolean>},
    {"true", plain<is_literally_true>},
    {"false", plain<is_literally_false>},
    {"integer", plain<is_integer>},
    {"float", plain<is_float>},
    {"number", plain<is_number>},
    {"string", plain<is_string>},
    {"mapping", plain<is_mapping>},
    {"sequence", plain<has_length_and_items>},
    {"iterable", plain<can_iterate>},
    {"callable", plain<is_callable>},
    {"escaped", plain<is_escaped>},
    {"lower", test_lower},
    {"upper", test_upper},
    {"odd", test_odd},
    {"even", test_even},
    {"divisibleby", test_divisible},
    {"sameas", test_same_as},
    {"in", test_in},
    {"filter", test_filter},
    {"test", test_test},
    {"==", compared<CompareOp::kEq>},
    {"eq", compared<CompareOp::kEq>},
    {"equalto", compared<CompareOp::kEq>},
    {"!=", compared<CompareOp::kNe>},
    {"ne", compared<CompareOp::kNe>},
    {">", compared<CompareOp::kGt>},
    {"gt", compared<CompareOp::kGt>},
    {"greaterthan", compared<CompareOp::kGt>},
    {">=", compared<CompareOp::kGe>},
    {"ge", compared<CompareOp::kGe>},
    {"<", compared<CompareOp::kLt>},
    {"lt", compared<CompareOp::kLt>},
    {"lessthan", compared<CompareOp::kLt>},
    {"<=", compared<CompareOp::kLe>},
    {"le", compared<CompareOp::kLe>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const Test& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace quire::text::jinja
