#include "quire/engine/text_stream.h"

namespace quire::engine {

ChoiceText::ChoiceText(const text::Tokenizer& tokenizer, bool skip_special_tokens)
    : detokenizer_(tokenizer, skip_special_tokens) {}

std::string ChoiceText::push(const OutputEvent& event) {
  if (event.text) return *event.text;
  std::string text;
  const size_t shown = event.tokens.size() - (event.drop_last_text ? 1 : 0);
  for (size_t i = 0; i < shown; ++i) text += detokenizer_.push(event.tokens[i]);
  if (event.finish != FinishReason::kNone) text += detokenizer_.flush();
  return text;
}

}  // namespace quire::engine
