// The byte-level alphabet of GPT-2: a printable character for each of the 256 bytes, in which
// vocabularies and merges are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::text {

/// The character, in UTF-8, that stands for `byte`.
std::string_view byte_character(uint8_t byte);
/// The text in which each byte of `bytes` is its character.
std::string to_byte_characters(std::string_view bytes);
/// Appends the bytes that the characters of `content` stand for and returns true; returns false and
/// appends nothing when one of them is not in the alphabet.
bool append_bytes_of(std::string_view content, std::string& bytes);

}  // namespace quire::text
