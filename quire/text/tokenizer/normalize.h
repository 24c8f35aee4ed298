// Unicode normalization, with the tables that HF's normalizers have.
#pragma once

#include <string>
#include <string_view>

namespace quire::text {

/// True when normalize_nfc() leaves `text` as it is; may be false for such a text.
bool is_surely_nfc(std::string_view text);
/// The text in Normalization Form C. Bytes that are not UTF-8 are kept. Linear in the length up to
/// the sorting of marks (n log n), whatever the text.
std::string normalize_nfc(std::string_view text);

}  // namespace quire::text
