#include "quire/base/error.h"

#include <fmt/format.h>

namespace quire {
namespace {

std::string sentence(std::string_view where, std::string_view field, std::string_view expected,
                     std::string_view found) {
  if (field.empty()) return fmt::format("{}: expected {}, found {}", where, expected, found);
  return fmt::format("{}: {}: expected {}, found {}", where, field, expected, found);
}

}  // namespace

LoadError::LoadError(std::string_view where, std::string_view field, std::string_view expected,
                     std::string_view found)
    : std::runtime_error(sentence(where, field, expected, found)) {}

LoadError::LoadError(std::string_view where, std::string_view message)
    : std::runtime_error(fmt::format("{}: {}", where, message)) {}

}  // namespace quire
