// ProbeTable: loops of one instruction set that only read, or only multiply: what a kernel can
// reach at most.
#pragma once

// Files compiled for an instruction set include this header: keep it to plain structs and
// <cstdint>.
#include <cstdint>

namespace quire::backend::cpu {

/// A loop of independent multiply-adds on registers.
struct PeakProbe {
  void (*run)(int64_t rounds) = nullptr;  // null: the level has no such instruction
  int64_t operations = 0;                 // of one round; a multiply and an add are two
  const char* instruction = "";
};

/// Reads `bytes` from `data` (64-aligned) once, as 1, 2, 4 or 8 streams that lie bytes / streams
/// apart. `bytes` is a multiple of kReadUnit. Returns something that depends on every byte.
using ReadProbe = uint64_t (*)(const void* data, int64_t bytes);

inline constexpr int kNumReadProbes = 4;
inline constexpr int kReadStreams[kNumReadProbes] = {1, 2, 4, 8};
/// Bytes a stream advances by, and what sizes must be a multiple of.
inline constexpr int64_t kReadStep = 256;
inline constexpr int64_t kReadUnit = 8 * kReadStep;

struct ProbeTable {
  PeakProbe fp32;
  PeakProbe bf16;
  PeakProbe int8;
  ReadProbe read[kNumReadProbes] = {};  // by kReadStreams
};

// Each level fills the whole table with what it has.
namespace scalar {
void fill_probes(ProbeTable&);
}
namespace avx2 {
void fill_probes(ProbeTable&);
}
namespace avx512 {
void fill_probes(ProbeTable&);
}

}  // namespace quire::backend::cpu
