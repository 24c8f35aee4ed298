#include "quire/backend/cpu/ceilings/probing.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include <fmt/format.h>

namespace quire::backend::cpu {

double seconds_of(const std::function<void()>& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t round_down(int64_t bytes, int64_t unit) {
  return bytes / unit * unit;
}

Figure rate_figure(std::vector<double> rates) {
  Figure figure = time_figure(rates);
  if (!rates.empty()) figure.best = *std::max_element(rates.begin(), rates.end());
  return figure;
}

Figure time_figure(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const size_t middle = times.size() / 2;
  const double median =
      times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  return {.median = median, .best = times.front()};
}

ProbeTable probe_table(Level level) {
  ProbeTable table;
  switch (level) {
    case Level::kScalar:
      scalar::fill_probes(table);
      break;
    case Level::kAvx2:
      avx2::fill_probes(table);
      break;
    case Level::kAvx512:
      avx512::fill_probes(table);
      break;
  }
  return table;
}

double read_rate(const RunWorkers& run, ReadProbe probe, const std::byte* data, int64_t bytes,
                 int64_t passes) {
  int64_t read = 0;
  run([](int, int) {});  // wakes workers that sleep
  const double seconds = seconds_of([&] {
    run([&](int worker, int num_workers) {
      const int64_t share = round_down(bytes / num_workers, kReadUnit);
      for (int64_t pass = 0; pass < passes; ++pass) {
        const uint64_t sum = probe(data + worker * share, share);
        __asm__ volatile("" ::"r"(sum));
      }
      if (worker == 0) read = share * num_workers * passes;
    });
  });
  return static_cast<double>(read) / seconds / 1e9;
}

double peak_rate(const RunWorkers& run, const PeakProbe& probe) {
  if (probe.run == nullptr) return 0;
  constexpr int64_t kRounds = 1 << 20;
  int workers = 1;
  run([](int, int) {});  // wakes workers that sleep
  const double seconds = seconds_of([&] {
    run([&](int worker, int num_workers) {
      probe.run(kRounds);
      if (worker == 0) workers = num_workers;
    });
  });
  return static_cast<double>(kRounds * probe.operations) * workers / seconds / 1e9;
}

int64_t cache_bytes(int level, const std::string& root) {
  // Outside of these the report is of a virtual machine that makes sizes up.
  constexpr int64_t kLeast[] = {0, int64_t{8} << 10, int64_t{128} << 10, int64_t{1} << 20};
  constexpr int64_t kMost[] = {0, int64_t{512} << 10, int64_t{64} << 20, int64_t{128} << 20};
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("{}/cpu0/cache/index{}/", root, index);
    int found_level = 0;
    std::string type;
    int64_t kibibytes = 0;
    std::ifstream(folder + "level") >> found_level;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> kibibytes;  // "48K"
    if (found_level != level || type == "Instruction") continue;
    const int64_t bytes = kibibytes << 10;
    return bytes >= kLeast[level] && bytes <= kMost[level] ? bytes : 0;
  }
  return 0;
}

}  // namespace quire::backend::cpu
