// JSON of a request as the values a chat template sees.
#pragma once

#include <boost/json/fwd.hpp>

#include "quire/base/result.h"
#include "quire/text/chat_template.h"

namespace quire::llm {

/// Keeps the order of keys, and integers and floats apart; an integer beyond int64 becomes a float.
text::Value to_value(const boost::json::value& json);

/// The variables of a chat request's template, as transformers' apply_chat_template passes them:
/// `messages`, `tools` and `documents` (none when absent), `add_generation_prompt` (true when
/// absent), `bos_token` and `eos_token` where the request has them, and all of
/// `chat_template_kwargs`. `defaults` (the model's special tokens) stand where the request says
/// nothing. An Error of kind kInvalid names a field of the wrong type.
Result<text::Value::Dict> chat_variables(const boost::json::value& request,
                                         const text::Value::Dict& defaults);

}  // namespace quire::llm
