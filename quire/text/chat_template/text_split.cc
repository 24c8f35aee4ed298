#include "quire/text/chat_template/text_split.h"

#include <algorithm>

namespace quire::text::jinja {
namespace {

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

void charge_search(Runtime& runtime, std::string_view text, std::string_view pattern) {
  if (pattern.size() > text.size()) return;
  runtime.meter().step(static_cast<int64_t>((text.size() / 64 + 1) * (pattern.size() / 64 + 1)));
}

std::vector<std::string_view> split_lines(Runtime& runtime, std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t end = position;
    const char32_t c = decode_utf8(text, position);
    if (!is_line_end(c)) continue;
    if (c == '\r' && position < text.size() && text[position] == '\n') ++position;
    runtime.meter().step();
    lines.push_back(text.substr(begin, (keep_ends ? position : end) - begin));
    begin = position;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::vector<std::string_view> split_space(Runtime& runtime, std::string_view text,
                                          int64_t max_splits) {
  std::vector<std::string_view> words;
  text = strip(text, StripSide::kLeft);
  while (!text.empty()) {
    runtime.meter().step();
    if (max_splits >= 0 && static_cast<int64_t>(words.size()) >= max_splits) {
      words.push_back(text);
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      size_t next = end;
      if (is_space(decode_utf8(text, next))) break;
      end = next;
    }
    words.push_back(text.substr(0, end));
    text = strip(text.substr(end), StripSide::kLeft);
  }
  return words;
}

std::vector<std::string_view> split_space_from_right(Runtime& runtime, std::string_view text,
                                                     int64_t max_splits) {
  std::vector<std::string_view> words;
  text = strip(text, StripSide::kRight);
  while (!text.empty()) {
    runtime.meter().step();
    if (max_splits >= 0 && static_cast<int64_t>(words.size()) >= max_splits) {
      words.push_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      size_t previous = begin;
      if (is_space(decode_utf8_before(text, previous))) break;
      begin = previous;
    }
    words.push_back(text.substr(begin));
    text = strip(text.substr(0, begin), StripSide::kRight);
  }
  std::reverse(words.begin(), words.end());
  return words;
}

std::vector<std::string_view> split_by(Runtime& runtime, std::string_view text,
                                       std::string_view separator, int64_t max_splits) {
  std::vector<std::string_view> parts;
  charge_search(runtime, text, separator);
  while (max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits) {
    const size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    runtime.meter().step();
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_by_from_right(Runtime& runtime, std::string_view text,
                                                  std::string_view separator, int64_t max_splits) {
  std::vector<std::string_view> parts;
  charge_search(runtime, text, separator);
  while (max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits) {
    const size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    runtime.meter().step();
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string replace_text(Runtime& runtime, std::string_view text, std::string_view from,
                         std::string_view to, int64_t count) {
  charge_search(runtime, text, from);
  std::string out;
  const auto append = [&](std::string_view part) {
    runtime.meter().require(out.size() + part.size());
    out += part;
  };
  const auto may_go_on = [&] {
    runtime.meter().step();
    return count != 0;
  };
  if (from.empty()) {  // between all code points and at both ends
    size_t position = 0;
    while (may_go_on()) {
      append(to);
      if (count > 0) --count;
      if (position >= text.size()) return out;
      const size_t begin = position;
      decode_utf8(text, position);
      append(text.substr(begin, position - begin));
    }
    append(text.substr(position));
    return out;
  }
  while (may_go_on()) {
    const size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    append(text.substr(0, at));
    append(to);
    runtime.meter().step_bytes(to.size());
    text.remove_prefix(at + from.size());
    if (count > 0) --count;
  }
  append(text);
  return out;
}

std::string_view strip_charged(Runtime& runtime, std::string_view text, StripSide side,
                               std::string_view characters) {
  const size_t work = (text.size() / 16 + 1) * (characters.size() / 16 + 1);
  runtime.meter().step(static_cast<int64_t>(std::min<size_t>(work, size_t{1} << 40)));
  return strip(text, side, characters);
}

std::string pad_text(Runtime& runtime, const Datum& string, int64_t width, char32_t fill,
                     Alignment alignment) {
  const std::string_view text = text_of(string);
  const auto length = static_cast<int64_t>(string_length(string));
  if (width <= length) return std::string(text);
  const int64_t missing = width - length;
  runtime.meter().require(static_cast<size_t>(std::min(missing, kMaxLiveBytes)) * 4 + text.size());
  int64_t left = 0;
  if (alignment == Alignment::kRight) left = missing;
  // Python puts the odd blank to the left where the width is odd too.
  if (alignment == Alignment::kCenter) left = missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) append_utf8(out, fill);
  out += text;
  for (int64_t i = left; i < missing; ++i) append_utf8(out, fill);
  return out;
}

}  // namespace quire::text::jinja
