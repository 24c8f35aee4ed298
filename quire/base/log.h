// log: one line of what the program does, to stderr; control characters escaped, prompts never
// logged.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace quire {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Lines below `level` are dropped. The default is kInfo, or QUIRE_LOG_LEVEL
/// (debug|info|warning|error).
void set_log_level(LogLevel level);
void log_line(LogLevel level, std::string_view message);

/// Replaces control characters by \xNN, so that a value from outside cannot forge lines or colours.
std::string escape_control(std::string_view text);

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace quire
