// Splitting, replacing and padding of text as Python's str methods do it, charged to the meter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/text/chat_template/runtime.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {

/// Charges a search for `pattern` in `text`, at the worst case of both.
void charge_search(Runtime& runtime, std::string_view text, std::string_view pattern);

/// str.splitlines. Each part of what these return is one operation.
std::vector<std::string_view> split_lines(Runtime& runtime, std::string_view text, bool keep_ends);
/// str.split() without a separator, at most `max_splits` of them (below 0: all).
std::vector<std::string_view> split_space(Runtime& runtime, std::string_view text,
                                          int64_t max_splits);
std::vector<std::string_view> split_space_from_right(Runtime& runtime, std::string_view text,
                                                     int64_t max_splits);
/// str.split(separator); `separator` is not empty.
std::vector<std::string_view> split_by(Runtime& runtime, std::string_view text,
                                       std::string_view separator, int64_t max_splits);
std::vector<std::string_view> split_by_from_right(Runtime& runtime, std::string_view text,
                                                  std::string_view separator, int64_t max_splits);

/// str.replace, at most `count` times (below 0: all).
std::string replace_text(Runtime& runtime, std::string_view text, std::string_view from,
                         std::string_view to, int64_t count);
/// str.strip(characters) with its cost charged.
std::string_view strip_charged(Runtime& runtime, std::string_view text, StripSide side,
                               std::string_view characters);

enum class Alignment { kLeft, kRight, kCenter };
/// Pads a string to `width` code points.
std::string pad_text(Runtime& runtime, const Datum& string, int64_t width, char32_t fill,
                     Alignment alignment);

}  // namespace quire::text::jinja
