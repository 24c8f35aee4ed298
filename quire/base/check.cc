#include "quire/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace quire {

void check_failed(const char* file, int line, const char* condition, const char* detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s %s\n", file, line, condition, detail);
  std::abort();
}

}  // namespace quire
