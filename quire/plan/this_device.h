// this_device: the machine at hand as a Device, with the ceilings that were measured on it.
#pragma once

#include <cstdint>
#include <string>

#include "quire/backend/cpu/ceilings.h"
#include "quire/plan/device.h"

namespace quire::plan {

/// Bytes of the data caches that `threads` cores of the machine have between them, by level (1 to
/// 3); 0 where the system does not say. `root` is /sys/devices/system/cpu.
int64_t cache_bytes(int level, int threads, const std::string& root = "/sys/devices/system/cpu");

/// A device of measured ceilings. The reach is narrow: they are rates that loops have reached here.
Device device_of(const backend::cpu::Ceilings& ceilings, int32_t threads);

/// With the ceilings kept by `quire bench ceilings` for this many threads (0 = as many as the
/// engine takes); without any where there are none: then nothing is measured, and bytes can be
/// planned but no times. memory_bytes is left to the caller.
Device this_device(int32_t threads);

}  // namespace quire::plan
