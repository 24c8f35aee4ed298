// Literals inside tags: numbers and quoted strings, scanned and converted as Python's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quire/text/chat_template/lexer.h"

namespace quire::text::jinja {

/// Scans a number at `position`, which moves past it; false when there is none. Throws SyntaxError
/// for an integer beyond 64 bits.
bool scan_number(std::string_view source, size_t& position, uint32_t line, LexedToken& token);
/// The value of the quoted literal's inside. Throws SyntaxError.
std::string unescape(std::string_view inside, uint32_t line);

}  // namespace quire::text::jinja
