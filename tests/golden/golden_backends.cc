#include "tests/golden/golden_backends.h"

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/cpu/levels.h"
#include "tests/golden/reference_backend.h"

namespace quire::golden {

using backend::cpu::CpuBackend;

std::vector<GoldenBackend> golden_backends() {
  std::vector<GoldenBackend> backends = {
      {.name = "reference", .make = [] { return std::make_unique<ReferenceBackend>(); }}};
  for (const backend::cpu::Level level : backend::cpu::available_levels()) {
    backends.push_back(
        {.name = std::string("cpu_") + backend::cpu::level_name(level), .make = [level] {
           CpuBackend::Options options;
           options.num_threads = 2;
           options.level = level;
           return std::make_unique<CpuBackend>(options);
         }});
  }
  return backends;
}

std::unique_ptr<backend::Backend> best_backend() {
  return std::make_unique<CpuBackend>(CpuBackend::Options{});
}

}  // namespace quire::golden
