// known_fields: request fields that are part of the API but not built yet: an error that names
// them, unless neutral.
#pragma once

#include <optional>

#include <boost/json.hpp>

#include "quire/base/result.h"

namespace quire::server {

/// The error of the first known but unsupported field whose value would change the answer.
std::optional<Error> refuse_unsupported(const boost::json::object& body);

}  // namespace quire::server
