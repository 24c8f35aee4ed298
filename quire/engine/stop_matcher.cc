#include "quire/engine/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "quire/base/check.h"

namespace quire::engine {
namespace {

/// fallback[m]: length of the longest proper prefix of text[0, m) that also ends it.
std::vector<size_t> borders(const std::string& text) {
  std::vector<size_t> border(text.size() + 1, 0);
  size_t length = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) length = border[length];
    if (text[i] == text[length]) ++length;
    border[i + 1] = length;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include_stop)
    : include_stop_(include_stop) {
  for (std::string& stop : stops) {
    QUIRE_CHECK(!stop.empty());
    std::vector<size_t> fallback = borders(stop);
    patterns_.push_back({std::move(stop), std::move(fallback), 0});
  }
}

std::optional<size_t> StopMatcher::advance(char byte) {
  std::optional<size_t> found;
  for (size_t i = 0; i < patterns_.size(); ++i) {
    Pattern& pattern = patterns_[i];
    if (pattern.matched == pattern.text.size()) pattern.matched = pattern.fallback.back();
    while (pattern.matched > 0 && pattern.text[pattern.matched] != byte) {
      pattern.matched = pattern.fallback[pattern.matched];
    }
    if (pattern.text[pattern.matched] == byte) ++pattern.matched;
    const bool complete = pattern.matched == pattern.text.size();
    if (complete && (!found || pattern.text.size() > patterns_[*found].text.size())) found = i;
  }
  return found;
}

StopMatcher::Found StopMatcher::push(std::string_view text, bool may_stop) {
  for (const char byte : text) {
    held_ += byte;
    const std::optional<size_t> found = advance(byte);
    if (!found || !may_stop) continue;
    if (!include_stop_) held_.resize(held_.size() - patterns_[*found].text.size());
    return {std::exchange(held_, {}), found};
  }
  size_t unfinished = 0;
  for (const Pattern& pattern : patterns_) {
    // A whole match that was let pass holds back only what may begin another.
    const bool complete = pattern.matched == pattern.text.size();
    unfinished = std::max(unfinished, complete ? pattern.fallback.back() : pattern.matched);
  }
  Found result;
  result.text = held_.substr(0, held_.size() - unfinished);
  held_.erase(0, held_.size() - unfinished);
  return result;
}

std::string StopMatcher::flush() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace quire::engine
