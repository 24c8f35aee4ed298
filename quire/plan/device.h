// Device: what a plan knows of a processor: its memory, its ceilings and its links, with sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/backend/packed_weight.h"

namespace quire::plan {

/// One level of the memory hierarchy.
struct MemoryLevel {
  std::string name;
  int64_t bytes = 0;            // of the whole device; 0 for the last level, see Device
  double bytes_per_second = 0;  // 0 = not known: the level is shown and not reckoned with
};

/// A connection, each way. Bytes per second 0 = none.
struct Link {
  std::string name;
  double bytes_per_second = 0;
  double latency_seconds = 0;
};

/// The share of a ceiling that programs reach: what makes a prediction a range.
struct Reach {
  double low = 0;
  double high = 1;
};

/// What our kernels were seen to do on CPUs: see Device::overlap and input_seconds (of one core).
inline constexpr double kCpuOverlap = 0.65;
inline constexpr double kCpuInputCoreSeconds = 0.4e-9;

struct Device {
  enum class Kind : uint8_t { kCpu, kGpu };
  std::string name;
  std::vector<std::string> aliases;
  Kind kind = Kind::kCpu;
  int64_t memory_bytes = 0;
  int32_t workers = 1;  // cores, or multiprocessors of a GPU
  /// Operations a second (a multiply and an add are two), dense. 0 = not known.
  double peak_fp32 = 0;
  double peak_bf16 = 0;
  double peak_int8 = 0;
  std::vector<MemoryLevel> levels;  // the fastest first; the last one is the memory
  Link link;                        // to the other ranks
  Link host;                        // of a GPU
  Reach compute = {0.4, 0.75};
  Reach bandwidth = {0.6, 0.9};
  /// Which share of the shorter of a line's memory and arithmetic time goes by beside the longer:
  /// all of it on a GPU, whose many warps see to that; at 0 they add up.
  double overlap = 1;
  /// What a matmul's activations cost before it, a row and input: packing, on a CPU.
  double input_seconds = 0;
  /// What every operation costs beside its work: a launch, or a barrier of all workers.
  double operation_seconds = 0;
  std::vector<std::string> sources;
  bool measured = false;  // on this machine

  bool has_ceilings() const { return peak_fp32 > 0 && memory_bandwidth() > 0; }
  double memory_bandwidth() const { return levels.empty() ? 0.0 : levels.back().bytes_per_second; }
  /// Of a matmul whose activations are held so.
  double peak(backend::ActType act) const;
  /// Operations a byte at which the roof's slope meets its ceiling.
  double ridge(backend::ActType act) const;
};

/// The table the binary carries.
std::string_view devices_json();
/// All devices of a file of this form: {"devices": [{"name": .., "kind": "cpu" or "gpu",
/// "memory_mib": .., "workers": .., "peak_tops": {"fp32": .., "bf16": .., "int8": ..}, "levels":
/// [{"name": .., "mib": .., "gb_per_s": ..}], "link": {..}, "host": {..}, "sources": [..]}]}.
/// Throws LoadError naming `where` and the key.
std::vector<Device> parse_devices(std::string_view json, const std::string& where);
std::vector<Device> built_in_devices();
/// By name or alias, whatever case and spaces. Throws LoadError that lists the names.
const Device& find_device(const std::vector<Device>& devices, std::string_view name);

}  // namespace quire::plan
