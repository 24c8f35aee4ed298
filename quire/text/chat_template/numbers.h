// Reading numbers from text and rounding them as Python's int(), float() and round() do.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quire::text::jinja {

/// int(text, base), or nothing where Python raises ValueError (or the value is beyond 64 bits).
std::optional<int64_t> parse_int(std::string_view text, int base);
/// float(text), or nothing.
std::optional<double> parse_float(std::string_view text);
/// round(value, digits) of a float: half to even of the exact value.
double round_float(double value, int64_t digits);
/// round(value, -digits) of an int to a power of ten, half to even.
int64_t round_int(int64_t value, int64_t digits);

}  // namespace quire::text::jinja
