// Hand-made scanners for the best known pre-tokenizer patterns: same pieces as the regular
// expressions, in one pass and without backtracking.
#pragma once

#include <cstddef>
#include <string_view>

namespace quire::text {

/// The pattern of GPT-2, which is also ByteLevel's own.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// The patterns of Llama 3 and of Qwen 2, which differ in how many digits make a piece.
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Returns the end of the match that begins at `at` (inside the text). These patterns match at
/// every place, so that a text is cut into matches without gaps. The text's end is where the piece
/// under the pattern ends. Total time over a text is linear.
using MatchEnd = size_t (*)(std::string_view text, size_t at);

/// Null for a pattern that no scanner was made for.
MatchEnd find_scanner(std::string_view pattern);

}  // namespace quire::text
