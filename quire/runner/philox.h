// Philox: a counter-based random generator: the draw is a pure function of key and counter.
#pragma once

#include <array>
#include <cstdint>

namespace quire::runner {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
/// 2011).
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

/// The number in [0, 1), a multiple of 2^-53, that belongs to the token at `position` of `choice`.
constexpr double philox_uniform(uint64_t seed, int32_t choice, int32_t position) {
  const std::array<uint32_t, 4> bits =
      philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(choice), 0, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t joined = (uint64_t{bits[1]} << 32) | bits[0];
  return static_cast<double>(joined >> 11) * 0x1.0p-53;
}

}  // namespace quire::runner
