#include <fmt/format.h>

#include <cmath>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/numbers.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/sequence.h"

namespace quire::text::jinja {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

Datum truncated(double value) {
  if (std::isnan(value) || !(value >= -kTwoTo63 && value < kTwoTo63)) {
    throw RenderError("cannot convert float to integer");
  }
  return Datum::integer(static_cast<int64_t>(value));
}

Datum to_int(Runtime&, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("int", arguments, {"default", "base"});
  check_defined(input);
  Datum fallback = bound[0] == nullptr ? Datum::integer(0) : *bound[0];
  if (input.is_integral()) return Datum::integer(input.as_int());
  if (input.is(Type::kFloat)) {
    return std::isnan(input.as_float()) ? fallback : truncated(input.as_float());
  }
  if (!input.is_string()) return fallback;
  const auto base = static_cast<int>(integer_or(bound[1], 10));
  if (const auto value = parse_int(text_of(input), base)) return Datum::integer(*value);
  if (const auto value = parse_float(text_of(input)); value && std::isfinite(*value)) {
    return truncated(*value);
  }
  return fallback;
}

Datum to_float(Runtime&, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("float", arguments, {"default"});
  check_defined(input);
  if (input.is_number()) return Datum::real(input.to_double());
  if (input.is_string()) {
    if (const auto value = parse_float(text_of(input))) return Datum::real(*value);
  }
  return bound[0] == nullptr ? Datum::real(0.0) : *bound[0];
}

Datum absolute(Runtime&, const Datum& input, const Arguments& arguments) {
  bind("abs", arguments, {});
  check_defined(input);
  if (input.is(Type::kFloat)) return Datum::real(std::fabs(input.as_float()));
  if (!input.is_integral()) {
    throw RenderError(fmt::format("bad operand type for abs(): '{}'", type_name(input)));
  }
  return input.as_int() < 0 ? negate(input) : Datum::integer(input.as_int());
}

/// round(value, precision, 'ceil' or 'floor'): func(value * 10**precision) / 10**precision.
Datum round_to_one_side(Runtime& runtime, const Datum& value, int64_t precision, bool up) {
  const Datum power =
      binary(runtime, BinaryOp::kPow, Datum::integer(10), Datum::integer(precision));
  const Datum scaled = binary(runtime, BinaryOp::kMul, value, power);
  const Datum whole = scaled.is_integral() ? scaled
                                           : truncated(up ? std::ceil(scaled.as_float())
                                                          : std::floor(scaled.as_float()));
  return binary(runtime, BinaryOp::kDiv, whole, power);
}

Datum round_filter(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("round", arguments, {"precision", "method"});
  const int64_t precision = integer_or(bound[0], 0);
  const std::string_view method =
      bound[1] != nullptr && bound[1]->is_string() ? text_of(*bound[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    throw RenderError("method must be common, ceil or floor");
  }
  check_defined(input);
  if (!input.is_number()) {
    throw RenderError(fmt::format("type {} doesn't define __round__ method", type_name(input)));
  }
  if (method != "common") return round_to_one_side(runtime, input, precision, method == "ceil");
  if (input.is_integral()) return Datum::integer(round_int(input.as_int(), precision));
  return Datum::real(round_float(input.as_float(), precision));
}

Datum sum(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("sum", arguments, {"attribute", "start"});
  Datum total = bound[1] == nullptr ? Datum::integer(0) : *bound[1];
  if (total.is_string()) throw RenderError("sum() can't sum strings");
  Cursor cursor(runtime, input);
  for (Datum item; cursor.next(item);) {
    if (bound[0] != nullptr) item = dotted_attribute(runtime, item, *bound[0]);
    total = binary(runtime, BinaryOp::kAdd, total, item);
  }
  return total;
}

Datum file_size(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("filesizeformat", arguments, {"binary"});
  const bool binary_units = truth_or(bound[0], false);
  const double base = binary_units ? 1024 : 1000;
  check_defined(input);
  std::optional<double> bytes;
  if (input.is_number()) bytes = input.to_double();
  if (input.is_string()) bytes = parse_float(text_of(input));
  if (!bytes) throw RenderError("filesizeformat: expected a number");
  if (*bytes == 1) return runtime.borrowed_string("1 Byte");
  if (*bytes < base) return runtime.string(fmt::format("{} Bytes", static_cast<int64_t>(*bytes)));
  constexpr std::string_view kLetters = "kMGTPEZY";
  double unit = base;
  for (size_t i = 0; i < kLetters.size(); ++i, unit *= base) {
    if (*bytes >= unit * base && i + 1 < kLetters.size()) continue;
    const std::string letter(1, binary_units && i == 0 ? 'K' : kLetters[i]);
    return runtime.string(
        fmt::format("{:.1f} {}{}B", *bytes / unit, letter, binary_units ? "i" : ""));
  }
  return Datum::none();
}

constexpr Filter kFilters[] = {
    {"int", to_int},         {"float", to_float}, {"abs", absolute},
    {"round", round_filter}, {"sum", sum},        {"filesizeformat", file_size},
};

}  // namespace

std::span<const Filter> number_filters() {
  return kFilters;
}

}  // namespace quire::text::jinja
