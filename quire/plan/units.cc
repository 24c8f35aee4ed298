#include "quire/plan/units.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::plan {
namespace {

/// Three digits.
std::string digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = std::abs(bytes);
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const std::string sign = bytes < 0 ? "-" : "";
  if (unit == 0) return fmt::format("{}{:.0f} B", sign, value);
  return fmt::format("{}{} {}", sign, digits(value), kUnits[unit]);
}

std::string gib_text(double bytes) {
  return fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024.0 * 1024.0));
}

std::string rate_text(double per_second, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  double value = per_second;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{} {}{}", digits(value), kPrefixes[prefix], unit);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{} s", digits(seconds));
  if (seconds >= 1e-3) return fmt::format("{} ms", digits(seconds * 1e3));
  return fmt::format("{} us", digits(seconds * 1e6));
}

std::string count_text(int64_t number) {
  std::string text = fmt::format("{}", number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

int64_t parse_bytes(std::string_view text, std::string_view option) {
  const auto wrong = [&] {
    return LoadError(option, "", "a size such as 8GiB, 8G, 80GB or 512MiB", text);
  };
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !(number > 0)) throw wrong();
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty() || unit == "B") {
    if (number > 9e15) throw wrong();
    return static_cast<int64_t>(number);
  }
  constexpr std::string_view kLetters = "KMGT";
  const char letter = unit.front() == 'k' ? 'K' : unit.front();
  const size_t power = kLetters.find(letter);
  const std::string_view tail = unit.substr(1);
  if (power == std::string_view::npos || !(tail.empty() || tail == "iB" || tail == "B")) {
    throw wrong();
  }
  number *= std::pow(tail == "B" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  if (number > 9e15) throw wrong();
  return static_cast<int64_t>(number);
}

}  // namespace quire::plan
