#include <fmt/format.h>

#include <cmath>

#include "quire/text/chat_template/format.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/text_form.h"

namespace quire::text::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void throw_operands(BinaryOp op, const Datum& left, const Datum& right) {
  check_defined(left);
  check_defined(right);
  throw RenderError(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                                kSymbols[static_cast<size_t>(op)], type_name(left),
                                type_name(right)));
}

[[noreturn]] void throw_overflow() {
  throw RenderError("integer beyond 64 bits");
}
[[noreturn]] void throw_zero() {
  throw RenderError("division by zero");
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) throw_zero();
  if (b == -1) {
    if (a == INT64_MIN) throw_overflow();
    return -a;
  }
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0 && ((a < 0) != (b < 0))) ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) throw_zero();
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

double true_div(int64_t a, int64_t b) {
  if (b == 0) throw_zero();
  constexpr int64_t kExact = int64_t{1} << 53;  // below it one double division rounds once
  if (-kExact <= a && a <= kExact && -kExact <= b && b <= kExact) {
    return static_cast<double>(a) / static_cast<double>(b);
  }
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

/// Python's float % : the sign of the divisor.
double float_mod(double a, double b) {
  if (b == 0) throw_zero();
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Python's float // : the floor of the exact quotient.
double float_floor_div(double a, double b) {
  if (b == 0) throw_zero();
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && ((rest < 0) != (b < 0))) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

int64_t int_pow(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) throw_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) throw_overflow();
  }
  return result;
}

double float_pow(double base, double exponent) {
  if (base == 0 && exponent < 0) throw RenderError("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) &&
      exponent != std::floor(exponent)) {
    throw RenderError("a negative number to a fractional power is complex");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    throw RenderError("numerical result out of range");
  }
  return result;
}

Datum int_binary(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &result)) throw_overflow();
      return Datum::integer(result);
    case BinaryOp::kSub:
      if (__builtin_sub_overflow(a, b, &result)) throw_overflow();
      return Datum::integer(result);
    case BinaryOp::kMul:
      if (__builtin_mul_overflow(a, b, &result)) throw_overflow();
      return Datum::integer(result);
    case BinaryOp::kDiv:
      return Datum::real(true_div(a, b));
    case BinaryOp::kFloorDiv:
      return Datum::integer(floor_div(a, b));
    case BinaryOp::kMod:
      return Datum::integer(floor_mod(a, b));
    case BinaryOp::kPow:
      if (b < 0) return Datum::real(float_pow(static_cast<double>(a), static_cast<double>(b)));
      if (a == 0 || a == 1) return Datum::integer(b == 0 ? 1 : a);
      if (a == -1) return Datum::integer(b % 2 == 0 ? 1 : -1);
      return Datum::integer(int_pow(a, b));
  }
  return Datum::none();
}

Datum float_binary(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return Datum::real(a + b);
    case BinaryOp::kSub:
      return Datum::real(a - b);
    case BinaryOp::kMul:
      return Datum::real(a * b);
    case BinaryOp::kDiv:
      if (b == 0) throw_zero();
      return Datum::real(a / b);
    case BinaryOp::kFloorDiv:
      return Datum::real(float_floor_div(a, b));
    case BinaryOp::kMod:
      return Datum::real(float_mod(a, b));
    case BinaryOp::kPow:
      return Datum::real(float_pow(a, b));
  }
  return Datum::none();
}

/// Adds strings; where one is Markup the other is escaped.
Datum concat_strings(Runtime& runtime, const Datum& left, const Datum& right) {
  const bool markup = is_markup(left) || is_markup(right);
  runtime.meter().require(text_of(left).size() + text_of(right).size());
  std::string out;
  if (markup) {
    for (const Datum* part : {&left, &right}) {
      if (is_markup(*part)) {
        out += text_of(*part);
      } else {
        out += escape_html(text_of(*part));
      }
    }
  } else {
    out.reserve(text_of(left).size() + text_of(right).size());
    out += text_of(left);
    out += text_of(right);
  }
  return runtime.string(std::move(out), markup);
}

Datum concat_lists(Runtime& runtime, const Datum& left, const Datum& right) {
  const auto& a = left.as<ListObject>().items;
  const auto& b = right.as<ListObject>().items;
  runtime.meter().require((a.size() + b.size()) * sizeof(Datum));
  std::vector<Datum> items;
  items.reserve(a.size() + b.size());
  items.insert(items.end(), a.begin(), a.end());
  items.insert(items.end(), b.begin(), b.end());
  return left.is(Type::kList) ? runtime.list(std::move(items)) : runtime.tuple(std::move(items));
}

/// Throws unless `count` copies of `bytes` bytes fit.
size_t checked_copies(Runtime& runtime, size_t bytes, int64_t count) {
  if (count <= 0 || bytes == 0) return 0;
  if (static_cast<size_t>(count) > static_cast<size_t>(kMaxLiveBytes)) {
    runtime.meter().require(static_cast<size_t>(kMaxLiveBytes) + 1);
  }
  runtime.meter().require(bytes * static_cast<size_t>(count));
  return static_cast<size_t>(count);
}

Datum repeat(Runtime& runtime, const Datum& sequence, int64_t count) {
  if (sequence.is_string()) {
    const std::string_view text = text_of(sequence);
    const size_t copies = checked_copies(runtime, text.size(), count);
    std::string out;
    out.reserve(text.size() * copies);
    for (size_t i = 0; i < copies; ++i) out += text;
    return runtime.string(std::move(out), is_markup(sequence));
  }
  const auto& items = sequence.as<ListObject>().items;
  const size_t copies = checked_copies(runtime, items.size() * sizeof(Datum), count);
  std::vector<Datum> out;
  out.reserve(items.size() * copies);
  for (size_t i = 0; i < copies; ++i) out.insert(out.end(), items.begin(), items.end());
  return sequence.is(Type::kList) ? runtime.list(std::move(out)) : runtime.tuple(std::move(out));
}

bool is_repeatable(const Datum& value) {
  return value.is_string() || value.is_sequence();
}

}  // namespace

Datum binary(Runtime& runtime, BinaryOp op, const Datum& left, const Datum& right) {
  if (left.is_integral() && right.is_integral()) {
    return int_binary(op, left.as_int(), right.as_int());
  }
  if (left.is_number() && right.is_number()) {
    return float_binary(op, left.to_double(), right.to_double());
  }
  if (op == BinaryOp::kAdd) {
    if (left.is_string() && right.is_string()) return concat_strings(runtime, left, right);
    if (left.type() == right.type() && left.is_sequence()) {
      return concat_lists(runtime, left, right);
    }
    check_defined(left);
    check_defined(right);
    if (left.is_string()) {
      throw RenderError(
          fmt::format("can only concatenate str (not \"{}\") to str", type_name(right)));
    }
  }
  if (op == BinaryOp::kMul) {
    if (is_repeatable(left) && right.is_integral()) return repeat(runtime, left, right.as_int());
    if (left.is_integral() && is_repeatable(right)) return repeat(runtime, right, left.as_int());
  }
  if (op == BinaryOp::kMod && left.is_string()) return format_percent(runtime, left, right);
  throw_operands(op, left, right);
}

Datum negate(const Datum& value) {
  check_defined(value);
  if (value.is(Type::kFloat)) return Datum::real(-value.as_float());
  if (!value.is_integral()) {
    throw RenderError(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
  }
  if (value.as_int() == INT64_MIN) throw_overflow();
  return Datum::integer(-value.as_int());
}

Datum unary_plus(const Datum& value) {
  check_defined(value);
  if (!value.is_number()) {
    throw RenderError(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
  }
  return value.is(Type::kBool) ? Datum::integer(value.as_int()) : value;
}

}  // namespace quire::text::jinja
