// run_tokenize: the body of `quire tokenize`, which shows what a tokenizer makes of texts.
#pragma once

#include <iosfwd>

#include "quire/text/tokenizer.h"

namespace quire::apps {

/// Reads one JSON object a line and writes one line for each: for {"text": "...",
/// "add_special_tokens": true, "parse_special": true} a JSON array of ids, for {"ids": [...],
/// "skip_special_tokens": false} the text they decode to as a JSON string. The flags shown are the
/// defaults. A line that is neither gets {"error": "..."}. Returns the exit code: 0, or 1 when a
/// line was in error.
int run_tokenize(std::istream& in, std::ostream& out, const text::Tokenizer& tokenizer);

}  // namespace quire::apps
