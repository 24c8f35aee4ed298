// The probes of this level: 256-bit registers, FMA. Bytes are multiplied by vpmaddubsw, whose
// 16-bit sums a kernel must still widen: the peak is of the products alone.
#include <immintrin.h>

#include "quire/backend/cpu/ceilings/probes.h"

namespace quire::backend::cpu::avx2 {
namespace {

using Line = __m256i;
constexpr int64_t kLineBytes = 32;
constexpr int kSums = 12;

inline Line load_line(const char* at) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
}
inline Line merge(Line a, Line b) {
  return _mm256_or_si256(a, b);
}
inline uint64_t fold(Line line) {
  const __m128i half =
      _mm_or_si128(_mm256_castsi256_si128(line), _mm256_extracti128_si256(line, 1));
  return static_cast<uint64_t>(_mm_extract_epi64(half, 0) | _mm_extract_epi64(half, 1));
}

// Assembly, since a compiler may not drop or merge what nobody reads.
struct PeakF32 {
  using Register = __m256;
  static Register start() { return _mm256_set1_ps(0x1p-8f); }
  static void step(Register& sum, Register a, Register b) {
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  }
};

struct PeakI8 {
  using Register = __m256i;
  static Register start() { return _mm256_set1_epi8(3); }
  static void step(Register& sum, Register a, Register b) {
    __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(sum) : "x"(a), "x"(b));
  }
};

#include "quire/backend/cpu/generic/probes.inc"

}  // namespace

void fill_probes(ProbeTable& table) {
  table.fp32 = {repeat<PeakF32, kSums>, kSums * 16, "vfmadd231ps ymm"};
  table.int8 = {repeat<PeakI8, kSums>, kSums * 64, "vpmaddubsw ymm"};
  fill_reads(table);
}

}  // namespace quire::backend::cpu::avx2
