// LengthPair: how many tokens a request brings and how many it asks for; files of them, one a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::bench {

struct LengthPair {
  int32_t input_len = 0;
  int32_t output_len = 0;
  friend bool operator==(const LengthPair&, const LengthPair&) = default;
};

/// Reads JSON lines {"input_len": 161, "output_len": 338}; other members are ignored, empty lines
/// skipped. `where` names the text in the LoadError of a line that is anything else, or has a
/// length outside 1..2^24.
std::vector<LengthPair> parse_lengths(std::string_view text, const std::string& where);
/// The same of a file. Throws LoadError.
std::vector<LengthPair> read_lengths(const std::string& path);

/// The committed file of 2,000 pairs: drawn with ShareGPT's published means, not recorded
/// (tools/draw_lengths.py says how).
std::string_view sharegpt_like_lengths();

}  // namespace quire::bench
