// SpecialCasing: the characters whose upper, title or lower case is more than one character.
#pragma once

namespace quire::text::jinja {

/// Unused places are 0.
struct SpecialCasing {
  char32_t from;
  char32_t upper[3];
  char32_t title[3];
  char32_t lower[3];
};

/// The row of `c`, or null when its case mappings are single characters.
const SpecialCasing* find_special_casing(char32_t c);

}  // namespace quire::text::jinja
