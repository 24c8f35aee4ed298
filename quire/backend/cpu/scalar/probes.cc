// The probes of this level: what every x86-64 processor has. Products of bytes are had from the
// 16-bit multiply-add.
#include <emmintrin.h>

#include "quire/backend/cpu/ceilings/probes.h"

namespace quire::backend::cpu::scalar {
namespace {

using Line = __m128i;
constexpr int64_t kLineBytes = 16;
constexpr int kSums = 12;

inline Line load_line(const char* at) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(at));
}
inline Line merge(Line a, Line b) {
  return _mm_or_si128(a, b);
}
inline uint64_t fold(Line line) {
  const __m128i half = _mm_or_si128(line, _mm_unpackhi_epi64(line, line));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(half));
}

// Assembly, since a compiler may not drop or merge what nobody reads. Two-operand instructions: the
// product is made in the sum's own register.
struct PeakF32 {
  using Register = __m128;
  static Register start() { return _mm_set1_ps(1.0f); }
  static void step(Register& sum, Register a, Register b) {
    __asm__ volatile("mulps %1, %0\n\taddps %2, %0" : "+x"(sum) : "x"(a), "x"(b));
  }
};

struct PeakI8 {
  using Register = __m128i;
  static Register start() { return _mm_set1_epi16(1); }
  static void step(Register& sum, Register a, Register /*b*/) {
    __asm__ volatile("pmaddwd %1, %0" : "+x"(sum) : "x"(a));
  }
};

#include "quire/backend/cpu/generic/probes.inc"

}  // namespace

void fill_probes(ProbeTable& table) {
  table.fp32 = {repeat<PeakF32, kSums>, kSums * 8, "mulps, addps xmm"};
  table.int8 = {repeat<PeakI8, kSums>, kSums * 16, "pmaddwd xmm"};
  fill_reads(table);
}

}  // namespace quire::backend::cpu::scalar
