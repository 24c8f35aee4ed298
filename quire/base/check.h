// QUIRE_CHECK: aborts on a bug, with the place and the condition; never reachable from user input.
#pragma once

namespace quire {

/// Prints the failed condition with its place and `detail`, then aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* detail);

}  // namespace quire

#define QUIRE_CHECK(condition)                                   \
  do {                                                           \
    if (!(condition)) [[unlikely]]                               \
      ::quire::check_failed(__FILE__, __LINE__, #condition, ""); \
  } while (false)

#define QUIRE_CHECK_MSG(condition, detail)                           \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::quire::check_failed(__FILE__, __LINE__, #condition, detail); \
  } while (false)
