// load_error_of: the message with which something refused to load, for tests.
#pragma once

#include <string>

#include "quire/base/error.h"

namespace quire::checkpoint::testing {

/// Runs `load` and returns the LoadError's message, or "no error" so that a comparison fails.
template <typename Load>
std::string load_error_of(Load&& load) {
  try {
    load();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace quire::checkpoint::testing
