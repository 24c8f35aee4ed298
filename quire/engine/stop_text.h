// StopText: the text of a choice that has stop strings, made in the engine thread right after
// sampling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/engine/stop_matcher.h"
#include "quire/text/detokenizer.h"

namespace quire::engine {

class StopText {
 public:
  StopText(const text::Tokenizer& tokenizer, bool skip_special_tokens,
           std::vector<std::string> stops, bool include_stop)
      : detokenizer_(tokenizer, skip_special_tokens), matcher_(std::move(stops), include_stop) {}

  /// Adds a token; `may_stop` is off before min_tokens.
  StopMatcher::Found push(int32_t token, bool may_stop) {
    return matcher_.push(detokenizer_.push(token), may_stop);
  }
  /// What is held back; called once, at the end of a choice that no stop string ended.
  std::string flush() {
    std::string text = matcher_.flush();
    return text += detokenizer_.flush();
  }
  const std::string& stop(size_t index) const { return matcher_.stop(index); }

 private:
  text::IncrementalDetokenizer detokenizer_;
  StopMatcher matcher_;
};

}  // namespace quire::engine
