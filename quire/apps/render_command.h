// quire render: prints the exact prompt that a chat template makes of a chat request.
#pragma once

#include <iosfwd>

#include "quire/text/chat_template.h"

namespace quire::apps {

/// Reads one chat request (JSON: messages, tools, add_generation_prompt, chat_template_kwargs, ...)
/// from `in` and writes its prompt to `out`, byte for byte and without a newline of its own.
/// `defaults` are the model's special tokens (bos_token, eos_token, ...) for requests that give
/// none. Returns the exit code; what went wrong goes to `errors` as one line.
int run_render(std::istream& in, std::ostream& out, std::ostream& errors,
               const text::ChatTemplate& chat_template, const text::Value::Dict& defaults);

/// The same for one request a line, each answered by a line {"text": ...} or {"error": ...}. Blank
/// lines are passed over. Returns 0: an error of a request is an answer.
int run_render_jsonl(std::istream& in, std::ostream& out, const text::ChatTemplate& chat_template,
                     const text::Value::Dict& defaults);

}  // namespace quire::apps
