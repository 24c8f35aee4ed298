#include "quire/text/tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Combining marks and compositions that came after Unicode 9, whose tables HF's normalizers use: to
// them these are ordinary characters. Ordered.
constexpr Range kInert[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42},
    {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
};

// Below this every code point is its own NFC and composes only with marks above it.
constexpr char32_t kFirstMark = 0x300;

bool is_inert(char32_t value) {
  if (value < kInert[0].first) return false;
  const auto* range = std::partition_point(std::begin(kInert), std::end(kInert),
                                           [value](const Range& r) { return r.last < value; });
  return range != std::end(kInert) && range->first <= value;
}

const utf8proc_property_t& property_of(char32_t value) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(value));
}

bool may_change(char32_t value) {
  if (value < kFirstMark) return false;
  if (value >= 0xAC00 && value <= 0xD7A3) return false;  // a Hangul syllable
  const utf8proc_property_t& property = property_of(value);
  // The property of a code point that is the second half of a composition is set as well.
  return property.combining_class != 0 || property.decomp_seqindex != UINT16_MAX ||
         property.comb_index != UINT16_MAX || (value >= 0x1100 && value <= 0x11FF);
}

/// Sorts each run of marks by combining class, keeping the order of equal ones.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto combining_class = [](utf8proc_int32_t point) {
    return utf8proc_get_property(point)->combining_class;
  };
  for (auto at = points.begin(); at != points.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(at, points.end(), [&](auto p) { return combining_class(p) == 0; });
    std::stable_sort(at, end,
                     [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

/// Appends the composed form of `points`, which then are empty.
void append_composed(std::vector<utf8proc_int32_t>& points, std::string& out) {
  if (points.size() == 1 && points[0] < 0x80) {
    out += static_cast<char>(points[0]);
    points.clear();
    return;
  }
  order_marks(points);
  const auto count =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::array<utf8proc_uint8_t, 4> bytes{};
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const auto length = utf8proc_encode_char(points[static_cast<size_t>(i)], bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
  }
  points.clear();
}

void append_decomposed(char32_t value, std::vector<utf8proc_int32_t>& points) {
  constexpr utf8proc_ssize_t kLongest = 4;  // of a canonical decomposition
  std::array<utf8proc_int32_t, kLongest> parts{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(value), parts.data(), kLongest,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundary);
  if (count < 1 || count > kLongest) {
    points.push_back(static_cast<utf8proc_int32_t>(value));
  } else {
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value != kInvalidByte && may_change(point.value)) return false;
    at += point.length;
  }
  return true;
}

std::string normalize_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> points;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    // Nothing moves or composes across ASCII, an inert character or a byte that is none.
    if (point.value < 0x80) {
      append_composed(points, out);
      points.push_back(static_cast<utf8proc_int32_t>(point.value));
    } else if (point.value == kInvalidByte || is_inert(point.value)) {
      append_composed(points, out);
      out += text.substr(at, point.length);
    } else {
      append_decomposed(point.value, points);
    }
    at += point.length;
  }
  append_composed(points, out);
  return out;
}

}  // namespace quire::text
