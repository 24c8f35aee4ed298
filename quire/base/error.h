// LoadError: what went wrong at start-up (a file, a setting, memory), in words a user can act on.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace quire {

/// Thrown while starting; caught in main() and the bindings, printed as one line, exit code 1.
class LoadError : public std::runtime_error {
 public:
  /// `where` is a file, option or tensor; `field` what inside it, empty when it is the whole.
  LoadError(std::string_view where, std::string_view field, std::string_view expected,
            std::string_view found);
  /// For errors that have no expected/found pair: "where: message".
  LoadError(std::string_view where, std::string_view message);
};

}  // namespace quire
