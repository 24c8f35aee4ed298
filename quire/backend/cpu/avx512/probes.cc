// The probes of this level: 512-bit registers, VNNI, BF16.
#include <immintrin.h>

#include "quire/backend/cpu/ceilings/probes.h"

namespace quire::backend::cpu::avx512 {
namespace {

using Line = __m512i;
constexpr int64_t kLineBytes = 64;
constexpr int kSums = 16;

inline Line load_line(const char* at) {
  return _mm512_load_si512(at);
}
inline Line merge(Line a, Line b) {
  return _mm512_or_si512(a, b);
}
inline uint64_t fold(Line line) {
  return static_cast<uint64_t>(_mm512_reduce_or_epi64(line));
}

// Assembly, since a compiler may not drop or merge what nobody reads. Values grow slowly, and are
// neither denormal nor infinite.
struct PeakF32 {
  using Register = __m512;
  static Register start() { return _mm512_set1_ps(0x1p-8f); }
  static void step(Register& sum, Register a, Register b) {
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

struct PeakBF16 {
  using Register = __m512i;
  static Register start() { return _mm512_set1_epi16(0x3b80); }  // bf16 2^-8
  static void step(Register& sum, Register a, Register b) {
    __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

struct PeakI8 {
  using Register = __m512i;
  static Register start() { return _mm512_set1_epi8(3); }
  static void step(Register& sum, Register a, Register b) {
    __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

#include "quire/backend/cpu/generic/probes.inc"

}  // namespace

void fill_probes(ProbeTable& table) {
  table.fp32 = {repeat<PeakF32, kSums>, kSums * 32, "vfmadd231ps zmm"};
  table.bf16 = {repeat<PeakBF16, kSums>, kSums * 64, "vdpbf16ps zmm"};
  table.int8 = {repeat<PeakI8, kSums>, kSums * 128, "vpdpbusd zmm"};
  fill_reads(table);
}

}  // namespace quire::backend::cpu::avx512
