// StopMatcher: finds stop strings in text that comes in pieces, and holds back what may be
// beginning one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::engine {

/// The stop that ends first in the text wins, the longest among those that end together: what is
/// found does not depend on how the text is cut into pieces. Linear in the text (Knuth-Morris-Pratt
/// for each stop).
class StopMatcher {
 public:
  /// No stop may be empty.
  StopMatcher(std::vector<std::string> stops, bool include_stop);

  struct Found {
    std::string text;            // what may be shown now
    std::optional<size_t> stop;  // index of the stop found; the text then ends with or before it
  };
  /// Adds text. With `may_stop` off, stops that end in this piece pass as text.
  Found push(std::string_view text, bool may_stop = true);
  /// What is held back; nothing is held afterwards.
  std::string flush();

  const std::string& stop(size_t index) const { return patterns_[index].text; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // by matched length: the longest proper border of that prefix
    size_t matched = 0;            // bytes of `text` that the input so far ends with
  };
  /// Feeds one byte to all; the longest pattern that it completes.
  std::optional<size_t> advance(char byte);

  std::vector<Pattern> patterns_;
  bool include_stop_;
  std::string held_;  // ends with the longest unfinished match
};

}  // namespace quire::engine
