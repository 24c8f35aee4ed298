#include "quire/backend/cpu/levels.h"

#include <cpuid.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "quire/base/error.h"

namespace quire::backend::cpu {
namespace {

struct Leaf {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Leaf cpuid(uint32_t leaf, uint32_t subleaf) {
  Leaf out;
  __get_cpuid_count(leaf, subleaf, &out.a, &out.b, &out.c, &out.d);
  return out;
}

bool bit(uint32_t word, int index) {
  return ((word >> index) & 1u) != 0;
}

uint64_t xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

}  // namespace

const char* level_name(Level level) {
  switch (level) {
    case Level::kScalar:
      return "scalar";
    case Level::kAvx2:
      return "avx2";
    case Level::kAvx512:
      return "avx512";
  }
  return "?";
}

Level detect_level() {
  const Leaf one = cpuid(1, 0);
  const bool os_saves = bit(one.c, 27);
  if (!os_saves) return Level::kScalar;
  const uint64_t saved = xcr0();
  const Leaf seven = cpuid(7, 0);
  const bool avx2 =
      (saved & 0x6) == 0x6 && bit(one.c, 12) /*FMA*/ && bit(one.c, 29) /*F16C*/ && bit(seven.b, 5);
  if (!avx2) return Level::kScalar;
  const Leaf seven_one = cpuid(7, 1);
  const bool avx512 = (saved & 0xe6) == 0xe6 && bit(seven.b, 16) /*F*/ && bit(seven.b, 17) /*DQ*/ &&
                      bit(seven.b, 30) /*BW*/ && bit(seven.b, 31) /*VL*/ &&
                      bit(seven.c, 11) /*VNNI*/ && bit(seven_one.a, 5) /*BF16*/;
  return avx512 ? Level::kAvx512 : Level::kAvx2;
}

Level chosen_level() {
  const Level best = detect_level();
  const char* cap = std::getenv("QUIRE_ISA");
  if (cap == nullptr || *cap == '\0') return best;
  const std::string_view wanted = cap;
  for (const Level level : {Level::kScalar, Level::kAvx2, Level::kAvx512}) {
    if (wanted == level_name(level)) return level < best ? level : best;
  }
  throw LoadError("QUIRE_ISA", "", "scalar, avx2 or avx512", wanted);
}

std::vector<Level> available_levels() {
  std::vector<Level> levels;
  for (const Level level : {Level::kScalar, Level::kAvx2, Level::kAvx512}) {
    if (level <= detect_level()) levels.push_back(level);
  }
  return levels;
}

KernelTable kernel_table(Level level) {
  KernelTable table;
  table.level = level_name(level);
  scalar::fill_matmul(table);
  scalar::fill_ops(table);
  if (level >= Level::kAvx2) {
    avx2::fill_matmul(table);
    avx2::fill_ops(table);
  }
  if (level >= Level::kAvx512) {
    avx512::fill_matmul(table);
    avx512::fill_ops(table);
  }
  return table;
}

}  // namespace quire::backend::cpu
