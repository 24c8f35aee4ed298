#include "quire/text/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>

namespace quire::text {
namespace {

struct CategoryRange {
  char32_t first;
  char32_t last;
  utf8proc_category_t category;
};

// Assigned in Unicode 15.0 to 16.0 (UnicodeData.txt), or changed since 14.0: the newer tables that
// HF's regular expressions have, over utf8proc's 15.0 and PCRE2's 14.0. Ordered.
constexpr CategoryRange kSinceUnicode14[] = {
    {0x897, 0x897, UTF8PROC_CATEGORY_MN},     {0xCF3, 0xCF3, UTF8PROC_CATEGORY_MC},
    {0xECE, 0xECE, UTF8PROC_CATEGORY_MN},     {0x1B4E, 0x1B4F, UTF8PROC_CATEGORY_PO},
    {0x1B7F, 0x1B7F, UTF8PROC_CATEGORY_PO},   {0x1C89, 0x1C89, UTF8PROC_CATEGORY_LU},
    {0x1C8A, 0x1C8A, UTF8PROC_CATEGORY_LL},   {0x2427, 0x2429, UTF8PROC_CATEGORY_SO},
    {0x2FFC, 0x2FFF, UTF8PROC_CATEGORY_SO},   {0x31E4, 0x31E5, UTF8PROC_CATEGORY_SO},
    {0x31EF, 0x31EF, UTF8PROC_CATEGORY_SO},   {0xA7CB, 0xA7CC, UTF8PROC_CATEGORY_LU},
    {0xA7CD, 0xA7CD, UTF8PROC_CATEGORY_LL},   {0xA7DA, 0xA7DA, UTF8PROC_CATEGORY_LU},
    {0xA7DB, 0xA7DB, UTF8PROC_CATEGORY_LL},   {0xA7DC, 0xA7DC, UTF8PROC_CATEGORY_LU},
    {0x105C0, 0x105F3, UTF8PROC_CATEGORY_LO}, {0x10D40, 0x10D49, UTF8PROC_CATEGORY_ND},
    {0x10D4A, 0x10D4D, UTF8PROC_CATEGORY_LO}, {0x10D4E, 0x10D4E, UTF8PROC_CATEGORY_LM},
    {0x10D4F, 0x10D4F, UTF8PROC_CATEGORY_LO}, {0x10D50, 0x10D65, UTF8PROC_CATEGORY_LU},
    {0x10D69, 0x10D6D, UTF8PROC_CATEGORY_MN}, {0x10D6E, 0x10D6E, UTF8PROC_CATEGORY_PD},
    {0x10D6F, 0x10D6F, UTF8PROC_CATEGORY_LM}, {0x10D70, 0x10D85, UTF8PROC_CATEGORY_LL},
    {0x10D8E, 0x10D8F, UTF8PROC_CATEGORY_SM}, {0x10EC2, 0x10EC4, UTF8PROC_CATEGORY_LO},
    {0x10EFC, 0x10EFF, UTF8PROC_CATEGORY_MN}, {0x1123F, 0x11240, UTF8PROC_CATEGORY_LO},
    {0x11241, 0x11241, UTF8PROC_CATEGORY_MN}, {0x11380, 0x11389, UTF8PROC_CATEGORY_LO},
    {0x1138B, 0x1138B, UTF8PROC_CATEGORY_LO}, {0x1138E, 0x1138E, UTF8PROC_CATEGORY_LO},
    {0x11390, 0x113B5, UTF8PROC_CATEGORY_LO}, {0x113B7, 0x113B7, UTF8PROC_CATEGORY_LO},
    {0x113B8, 0x113BA, UTF8PROC_CATEGORY_MC}, {0x113BB, 0x113C0, UTF8PROC_CATEGORY_MN},
    {0x113C2, 0x113C2, UTF8PROC_CATEGORY_MC}, {0x113C5, 0x113C5, UTF8PROC_CATEGORY_MC},
    {0x113C7, 0x113CA, UTF8PROC_CATEGORY_MC}, {0x113CC, 0x113CD, UTF8PROC_CATEGORY_MC},
    {0x113CE, 0x113CE, UTF8PROC_CATEGORY_MN}, {0x113CF, 0x113CF, UTF8PROC_CATEGORY_MC},
    {0x113D0, 0x113D0, UTF8PROC_CATEGORY_MN}, {0x113D1, 0x113D1, UTF8PROC_CATEGORY_LO},
    {0x113D2, 0x113D2, UTF8PROC_CATEGORY_MN}, {0x113D3, 0x113D3, UTF8PROC_CATEGORY_LO},
    {0x113D4, 0x113D5, UTF8PROC_CATEGORY_PO}, {0x113D7, 0x113D8, UTF8PROC_CATEGORY_PO},
    {0x113E1, 0x113E2, UTF8PROC_CATEGORY_MN}, {0x116D0, 0x116E3, UTF8PROC_CATEGORY_ND},
    {0x1171E, 0x1171E, UTF8PROC_CATEGORY_MC}, {0x11B00, 0x11B09, UTF8PROC_CATEGORY_PO},
    {0x11BC0, 0x11BE0, UTF8PROC_CATEGORY_LO}, {0x11BE1, 0x11BE1, UTF8PROC_CATEGORY_PO},
    {0x11BF0, 0x11BF9, UTF8PROC_CATEGORY_ND}, {0x11F00, 0x11F01, UTF8PROC_CATEGORY_MN},
    {0x11F02, 0x11F02, UTF8PROC_CATEGORY_LO}, {0x11F03, 0x11F03, UTF8PROC_CATEGORY_MC},
    {0x11F04, 0x11F10, UTF8PROC_CATEGORY_LO}, {0x11F12, 0x11F33, UTF8PROC_CATEGORY_LO},
    {0x11F34, 0x11F35, UTF8PROC_CATEGORY_MC}, {0x11F36, 0x11F3A, UTF8PROC_CATEGORY_MN},
    {0x11F3E, 0x11F3F, UTF8PROC_CATEGORY_MC}, {0x11F40, 0x11F40, UTF8PROC_CATEGORY_MN},
    {0x11F41, 0x11F41, UTF8PROC_CATEGORY_MC}, {0x11F42, 0x11F42, UTF8PROC_CATEGORY_MN},
    {0x11F43, 0x11F4F, UTF8PROC_CATEGORY_PO}, {0x11F50, 0x11F59, UTF8PROC_CATEGORY_ND},
    {0x11F5A, 0x11F5A, UTF8PROC_CATEGORY_MN}, {0x1342F, 0x1342F, UTF8PROC_CATEGORY_LO},
    {0x13439, 0x1343F, UTF8PROC_CATEGORY_CF}, {0x13440, 0x13440, UTF8PROC_CATEGORY_MN},
    {0x13441, 0x13446, UTF8PROC_CATEGORY_LO}, {0x13447, 0x13455, UTF8PROC_CATEGORY_MN},
    {0x13460, 0x143FA, UTF8PROC_CATEGORY_LO}, {0x16100, 0x1611D, UTF8PROC_CATEGORY_LO},
    {0x1611E, 0x16129, UTF8PROC_CATEGORY_MN}, {0x1612A, 0x1612C, UTF8PROC_CATEGORY_MC},
    {0x1612D, 0x1612F, UTF8PROC_CATEGORY_MN}, {0x16130, 0x16139, UTF8PROC_CATEGORY_ND},
    {0x16D40, 0x16D42, UTF8PROC_CATEGORY_LM}, {0x16D43, 0x16D6A, UTF8PROC_CATEGORY_LO},
    {0x16D6B, 0x16D6C, UTF8PROC_CATEGORY_LM}, {0x16D6D, 0x16D6F, UTF8PROC_CATEGORY_PO},
    {0x16D70, 0x16D79, UTF8PROC_CATEGORY_ND}, {0x18CFF, 0x18CFF, UTF8PROC_CATEGORY_LO},
    {0x1B132, 0x1B132, UTF8PROC_CATEGORY_LO}, {0x1B155, 0x1B155, UTF8PROC_CATEGORY_LO},
    {0x1CC00, 0x1CCEF, UTF8PROC_CATEGORY_SO}, {0x1CCF0, 0x1CCF9, UTF8PROC_CATEGORY_ND},
    {0x1CD00, 0x1CEB3, UTF8PROC_CATEGORY_SO}, {0x1D2C0, 0x1D2D3, UTF8PROC_CATEGORY_NO},
    {0x1DF25, 0x1DF2A, UTF8PROC_CATEGORY_LL}, {0x1E030, 0x1E06D, UTF8PROC_CATEGORY_LM},
    {0x1E08F, 0x1E08F, UTF8PROC_CATEGORY_MN}, {0x1E4D0, 0x1E4EA, UTF8PROC_CATEGORY_LO},
    {0x1E4EB, 0x1E4EB, UTF8PROC_CATEGORY_LM}, {0x1E4EC, 0x1E4EF, UTF8PROC_CATEGORY_MN},
    {0x1E4F0, 0x1E4F9, UTF8PROC_CATEGORY_ND}, {0x1E5D0, 0x1E5ED, UTF8PROC_CATEGORY_LO},
    {0x1E5EE, 0x1E5EF, UTF8PROC_CATEGORY_MN}, {0x1E5F0, 0x1E5F0, UTF8PROC_CATEGORY_LO},
    {0x1E5F1, 0x1E5FA, UTF8PROC_CATEGORY_ND}, {0x1E5FF, 0x1E5FF, UTF8PROC_CATEGORY_PO},
    {0x1F6DC, 0x1F6DC, UTF8PROC_CATEGORY_SO}, {0x1F774, 0x1F776, UTF8PROC_CATEGORY_SO},
    {0x1F77B, 0x1F77F, UTF8PROC_CATEGORY_SO}, {0x1F7D9, 0x1F7D9, UTF8PROC_CATEGORY_SO},
    {0x1F8B2, 0x1F8BB, UTF8PROC_CATEGORY_SO}, {0x1F8C0, 0x1F8C1, UTF8PROC_CATEGORY_SO},
    {0x1FA75, 0x1FA77, UTF8PROC_CATEGORY_SO}, {0x1FA87, 0x1FA89, UTF8PROC_CATEGORY_SO},
    {0x1FA8F, 0x1FA8F, UTF8PROC_CATEGORY_SO}, {0x1FAAD, 0x1FAAF, UTF8PROC_CATEGORY_SO},
    {0x1FABB, 0x1FABF, UTF8PROC_CATEGORY_SO}, {0x1FAC6, 0x1FAC6, UTF8PROC_CATEGORY_SO},
    {0x1FACE, 0x1FACF, UTF8PROC_CATEGORY_SO}, {0x1FADA, 0x1FADC, UTF8PROC_CATEGORY_SO},
    {0x1FADF, 0x1FADF, UTF8PROC_CATEGORY_SO}, {0x1FAE8, 0x1FAE9, UTF8PROC_CATEGORY_SO},
    {0x1FAF7, 0x1FAF8, UTF8PROC_CATEGORY_SO}, {0x1FBCB, 0x1FBEF, UTF8PROC_CATEGORY_SO},
    {0x2B739, 0x2B739, UTF8PROC_CATEGORY_LO}, {0x2EBF0, 0x2EE5D, UTF8PROC_CATEGORY_LO},
    {0x31350, 0x323AF, UTF8PROC_CATEGORY_LO},
};

const CategoryRange* find_new(char32_t value) {
  const auto* range =
      std::partition_point(std::begin(kSinceUnicode14), std::end(kSinceUnicode14),
                           [value](const CategoryRange& r) { return r.last < value; });
  return range != std::end(kSinceUnicode14) && range->first <= value ? range : nullptr;
}

bool between(char32_t value, char32_t first, char32_t last) {
  return first <= value && value <= last;
}

bool is_white_space(char32_t value) {
  return between(value, 0x09, 0x0D) || value == 0x20 || value == 0x85 || value == 0xA0 ||
         value == 0x1680 || between(value, 0x2000, 0x200A) || between(value, 0x2028, 0x2029) ||
         value == 0x202F || value == 0x205F || value == 0x3000;
}

// Alphabetic code points that are neither L, M nor Nl: the circled and squared letters.
bool is_enclosed_letter(char32_t value) {
  return between(value, 0x24B6, 0x24E9) || between(value, 0x1F130, 0x1F149) ||
         between(value, 0x1F150, 0x1F169) || between(value, 0x1F170, 0x1F189);
}

uint8_t flags_of(char32_t value, utf8proc_category_t category) {
  unsigned flags = 0;
  bool word = is_enclosed_letter(value) || between(value, 0x200C, 0x200D);
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      flags |= UnicodeClasses::kLetter;
      word = true;
      break;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      word = true;
      [[fallthrough]];
    case UTF8PROC_CATEGORY_NO:
      flags |= UnicodeClasses::kNumber | UnicodeClasses::kNumeric;
      break;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
      word = true;
      break;
    default:
      break;
  }
  if (between(value, 0x11DE0, 0x11DE9) || between(value, 0x16FF4, 0x16FF6)) {
    flags |= UnicodeClasses::kNumeric;
  }
  if (is_white_space(value)) flags |= UnicodeClasses::kSpace;
  if (word) flags |= UnicodeClasses::kWord;
  return static_cast<uint8_t>(flags);
}

bool continues(std::string_view bytes, size_t at) {
  return at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80;
}

}  // namespace

Utf8Unit utf8_unit(std::string_view bytes) {
  using State = Utf8Unit::State;
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (lead < 0x80) return {1, State::kWhole};
  if (lead < 0xC2 || lead > 0xF4) return {1, State::kInvalid};
  const uint32_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (bytes.size() == 1) return {1, State::kTruncated};
  // The second byte alone decides about overlong forms, surrogates and the end of the code space.
  const auto second = static_cast<unsigned char>(bytes[1]);
  const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (second < lowest || second > highest) return {1, State::kInvalid};
  for (uint32_t i = 2; i < length; ++i) {
    if (i == bytes.size()) return {i, State::kTruncated};
    if (!continues(bytes, i)) return {i, State::kInvalid};
  }
  return {length, State::kWhole};
}

CodePoint long_code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const Utf8Unit unit = utf8_unit(text.substr(at));
  if (unit.state != Utf8Unit::State::kWhole) return {kInvalidByte, 1};
  char32_t value = byte(0) & (0x7Fu >> unit.length);
  for (uint32_t i = 1; i < unit.length; ++i) value = (value << 6) | (byte(i) & 0x3Fu);
  return {value, unit.length};
}

CodePoint code_point_before(std::string_view text, size_t end) {
  for (size_t length = 1; length <= std::min<size_t>(4, end); ++length) {
    if (length < 4 && continues(text, end - length)) continue;
    const CodePoint found = code_point_at(text.substr(0, end), end - length);
    if (found.length == length) return found;
    break;
  }
  return {kInvalidByte, 1};
}

UnicodeClasses::UnicodeClasses() {
  std::map<std::array<uint8_t, 256>, uint16_t> known;
  for (size_t block = 0; block < index_.size(); ++block) {
    std::array<uint8_t, 256> flags{};
    for (size_t i = 0; i < flags.size(); ++i) {
      const auto value = static_cast<char32_t>(block * 256 + i);
      const CategoryRange* range = find_new(value);
      flags[i] = flags_of(value, range != nullptr
                                     ? range->category
                                     : utf8proc_category(static_cast<utf8proc_int32_t>(value)));
    }
    const auto [place, added] = known.try_emplace(flags, static_cast<uint16_t>(known.size()));
    if (added) blocks_.insert(blocks_.end(), flags.begin(), flags.end());
    index_[block] = place->second;
  }
}

const UnicodeClasses& UnicodeClasses::get() {
  static const UnicodeClasses classes;
  return classes;
}

char32_t stand_in(char32_t value) {
  if (value == 0x180E) return 0x2060;  // both Cf
  const CategoryRange* range = value < 0x897 ? nullptr : find_new(value);
  if (range == nullptr) return value;
  const bool long_form = value > 0xFFFF;
  switch (range->category) {
    case UTF8PROC_CATEGORY_LU:
      return long_form ? 0x10400 : 0xA722;
    case UTF8PROC_CATEGORY_LL:
      return long_form ? 0x10428 : 0xA723;
    case UTF8PROC_CATEGORY_LM:
      return long_form ? 0x16B40 : 0xA717;
    case UTF8PROC_CATEGORY_LO:
      return between(value, 0x20000, 0x3FFFF) ? 0x20000 : long_form ? 0x10000 : 0xA000;  // Han
    case UTF8PROC_CATEGORY_MN:
      return long_form ? 0x10A01 : 0xA66F;
    case UTF8PROC_CATEGORY_MC:
      return long_form ? 0x11000 : 0xA823;
    case UTF8PROC_CATEGORY_ND:
      return long_form ? 0x104A0 : 0xA620;
    case UTF8PROC_CATEGORY_NO:
      return long_form ? 0x10107 : 0xA830;
    case UTF8PROC_CATEGORY_PD:
      return long_form ? 0x10EAD : 0x2E17;
    case UTF8PROC_CATEGORY_PO:
      return long_form ? 0x10100 : 0xA60D;
    case UTF8PROC_CATEGORY_SM:
      return long_form ? 0x1D6C1 : 0x2200;
    case UTF8PROC_CATEGORY_SO:
      return long_form ? 0x10137 : 0xA490;
    case UTF8PROC_CATEGORY_CF:
      return long_form ? 0x110BD : 0x2060;
    default:
      return value;
  }
}

}  // namespace quire::text
