// The backends golden tests run on: the plain reference, and the CPU at every level it has.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "quire/backend/backend.h"

namespace quire::golden {

struct GoldenBackend {
  std::string name;  // "reference", "cpu_scalar", "cpu_avx2", ...
  std::function<std::unique_ptr<backend::Backend>()> make;
};
/// How test logs show one.
inline void PrintTo(const GoldenBackend& shown, std::ostream* out) {
  *out << shown.name;
}

std::vector<GoldenBackend> golden_backends();
/// The CPU backend at the level this process would choose.
std::unique_ptr<backend::Backend> best_backend();

}  // namespace quire::golden
