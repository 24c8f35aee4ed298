// chat_prompt: a chat request to the ids the model reads, so that only the template, and never a
// message, writes control tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/base/result.h"
#include "quire/text/chat_template.h"
#include "quire/text/tokenizer.h"

namespace quire::llm {

struct ChatPrompt {
  std::string text;
  std::vector<int32_t> ids;
};

/// Renders `from_client` (messages, tools, whatever the request brings) and `from_model` (its
/// special tokens) by the template and encodes the result.
///
/// A special token that a string of `from_client` spells stays text: while the template runs, one
/// private-use character that the request does not hold stands for the spelling, so that trim,
/// tojson, replace, slices and comparisons work as on any text; afterwards the spelling comes back
/// and its bytes are encoded with special tokens off. Names and nested keys count as text too. A
/// request that spells no special token is rendered and encoded as it is.
///
/// Errors: what the template raises; kInvalid when the request holds nearly all private-use
/// characters.
Result<ChatPrompt> make_chat_prompt(const text::ChatTemplate& chat_template,
                                    const text::Tokenizer& tokenizer, text::Value::Dict from_client,
                                    const text::Value::Dict& from_model, bool add_special_tokens);

}  // namespace quire::llm
