// error_response: the one table from request errors to HTTP status and OpenAI's error object.
#pragma once

#include <string>

#include "quire/base/result.h"
#include "quire/server/http.h"

namespace quire::server {

/// {"error": {"message", "type", "param", "code"}} with the status of the error's kind; 429 and 503
/// carry Retry-After.
HttpResponse error_response(const Error& error);
/// The same with a status that no kind has, which the object's code repeats.
HttpResponse error_response(const Error& error, int status);
/// The error object alone, for streams that have begun.
std::string error_body(const Error& error);

}  // namespace quire::server
