#include "quire/plan/this_device.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "quire/base/cpu_count.h"

namespace quire::plan {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "32768K", "1M" in bytes; 0 for anything else.
int64_t size_of(const std::string& text) {
  char* rest = nullptr;
  const long long number = std::strtoll(text.c_str(), &rest, 10);
  if (rest == text.c_str() || number < 0) return 0;
  const int64_t unit = *rest == 'K' ? 1024 : *rest == 'M' ? 1024 * 1024 : 1;
  return number * unit;
}

}  // namespace

int64_t cache_bytes(int level, int threads, const std::string& root) {
  int64_t sum = 0;
  int counted = 0;
  std::set<std::string> seen;  // caches, by who shares them
  for (const int cpu : allowed_cpus()) {
    for (int index = 0; index < 8; ++index) {
      const std::string folder = fmt::format("{}/cpu{}/cache/index{}", root, cpu, index);
      if (first_line(folder + "/level") != std::to_string(level)) continue;
      if (first_line(folder + "/type") == "Instruction") continue;
      if (!seen.insert(first_line(folder + "/shared_cpu_list")).second) continue;
      // A core's own cache counts for as many cores as work; a shared one wholly.
      if (level < 3 && counted >= threads) continue;
      sum += size_of(first_line(folder + "/size"));
      ++counted;
    }
  }
  return sum;
}

Device device_of(const backend::cpu::Ceilings& ceilings, int32_t threads) {
  Device device;
  device.name = "this";
  device.workers = threads;
  device.measured = true;
  device.peak_fp32 = ceilings.fp32_gflops * 1e9;
  device.peak_bf16 = (ceilings.bf16_gflops > 0 ? ceilings.bf16_gflops : ceilings.fp32_gflops) * 1e9;
  device.peak_int8 = (ceilings.int8_gops > 0 ? ceilings.int8_gops : ceilings.fp32_gflops) * 1e9;
  const double rates[] = {ceilings.l1_read_gbs, ceilings.l2_read_gbs, ceilings.l3_read_gbs};
  for (int level = 1; level <= 3; ++level) {
    const int64_t bytes = cache_bytes(level, threads);
    const double rate = rates[level - 1];
    if (bytes == 0 && rate <= 0) continue;
    device.levels.push_back(
        {.name = fmt::format("L{}", level), .bytes = bytes, .bytes_per_second = rate * 1e9});
  }
  device.levels.push_back(
      {.name = "memory", .bytes = 0, .bytes_per_second = ceilings.read_gbs * 1e9});
  device.link = {.name = "shared memory",
                 .bytes_per_second = ceilings.read_gbs * 1e9 / 3,
                 .latency_seconds = 4e-6};
  // A barrier, and what a phase takes to get going: claims, and its first lines from memory.
  device.operation_seconds = ceilings.barrier_us * 1e-6 + 2.5e-6;
  device.input_seconds = kCpuInputCoreSeconds / threads;
  // What our kernels reach of the loops' rates, from one row to five hundred.
  device.overlap = kCpuOverlap;
  device.compute = {0.5, 0.65};
  device.bandwidth = {0.75, 0.95};
  device.sources = {fmt::format("measured by quire bench ceilings: {}, {} threads, {}",
                                ceilings.cpu, ceilings.threads, ceilings.level)};
  return device;
}

Device this_device(int32_t threads) {
  const int32_t count = threads > 0 ? threads : default_thread_count();
  if (const auto kept = backend::cpu::load_ceilings(count)) return device_of(*kept, count);
  Device device;
  device.name = "this";
  device.workers = count;
  return device;
}

}  // namespace quire::plan
