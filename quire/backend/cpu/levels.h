// Levels: which instruction sets this processor has, and the kernel table for the best (or a
// capped) one.
#pragma once

#include <string>
#include <vector>

#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu {

enum class Level {
  kScalar,
  kAvx2,
  kAvx512
};  // kAvx512 means F, BW, VL, DQ, VNNI and BF16 together

const char* level_name(Level level);
/// The best level this processor and operating system support (CPUID and XCR0).
Level detect_level();
/// detect_level(), capped by the environment variable QUIRE_ISA (scalar|avx2|avx512). Throws
/// LoadError for other values.
Level chosen_level();
/// Every level this machine can run, weakest first: what tests compare.
std::vector<Level> available_levels();
/// Scalar kernels, overridden level by level up to `level`.
KernelTable kernel_table(Level level);

}  // namespace quire::backend::cpu
