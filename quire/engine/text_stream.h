// ChoiceText: turns one choice's events into text deltas, on the consumer's thread.
#pragma once

#include <string>

#include "quire/engine/output.h"
#include "quire/text/detokenizer.h"
#include "quire/text/tokenizer.h"

namespace quire::engine {

/// One per choice. Requests with stop strings bring their text along (held back where a stop string
/// may be beginning); the others are detokenized here.
class ChoiceText {
 public:
  ChoiceText(const text::Tokenizer& tokenizer, bool skip_special_tokens);

  /// The text this event adds, whole code points only; what was held back comes with the last
  /// event.
  std::string push(const OutputEvent& event);

 private:
  text::IncrementalDetokenizer detokenizer_;
};

}  // namespace quire::engine
