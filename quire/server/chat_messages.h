// chat_messages: brings the message shapes that clients send to the one shape chat templates read.
#pragma once

#include <boost/json.hpp>

#include "quire/base/result.h"
#include "quire/text/chat_template.h"

namespace quire::server {

/// Content given as a list of text parts becomes one string (parts joined by a newline); null or
/// absent content is allowed beside tool_calls; the role "developer" becomes "system". Other fields
/// pass through. Errors say which message.
Result<text::Value::List> normalise_messages(const boost::json::array& messages);

}  // namespace quire::server
