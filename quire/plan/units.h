// Units: bytes, rates and times as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::plan {

/// "98.4 MiB", "1.50 GiB": three digits, binary units.
std::string bytes_text(double bytes);
/// "14.96 GiB": always in GiB, two decimals.
std::string gib_text(double bytes);
/// "4.80 TB/s": decimal units; `unit` is "B/s" or "op/s".
std::string rate_text(double per_second, std::string_view unit);
/// "12.3 ms", "4.1 us", "2.0 s".
std::string time_text(double seconds);
/// "8,030,261,248".
std::string count_text(int64_t number);
/// "8GiB", "8G", "141GB", "512MiB", "80e9" in bytes. G and GiB are binary, GB is decimal. Throws
/// LoadError naming `option`.
int64_t parse_bytes(std::string_view text, std::string_view option);

}  // namespace quire::plan
