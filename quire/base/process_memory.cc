#include "quire/base/process_memory.h"

#include <fstream>
#include <limits>
#include <string_view>

namespace quire {
namespace {

struct Field {
  std::string_view name;
  int64_t ProcessMemory::*bytes;
};

constexpr Field kStatusFields[] = {
    {"VmSize:", &ProcessMemory::address_space},
    {"VmHWM:", &ProcessMemory::peak_rss},
    {"VmRSS:", &ProcessMemory::rss},
    {"RssAnon:", &ProcessMemory::anonymous},
    {"RssFile:", &ProcessMemory::file},
    {"VmSwap:", &ProcessMemory::swap},
};
// status sums counters that threads update in batches; where the page tables were walked, they are
// the truth.
constexpr Field kRollupFields[] = {
    {"Rss:", &ProcessMemory::rss},
    {"Pss:", &ProcessMemory::pss},
    {"Anonymous:", &ProcessMemory::anonymous},
    {"AnonHugePages:", &ProcessMemory::huge_pages},
};

/// Lines "Name:   123 kB".
template <size_t kCount>
void read_fields(const std::string& path, const Field (&fields)[kCount], ProcessMemory& memory) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    for (const Field& field : fields) {
      int64_t kib = 0;
      if (word == field.name && file >> kib) memory.*field.bytes = kib * 1024;
    }
    file.clear(file.rdstate() & ~std::ios::failbit);
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
}

}  // namespace

ProcessMemory read_process_memory(const std::string& folder) {
  ProcessMemory memory;
  read_fields(folder + "/status", kStatusFields, memory);
  read_fields(folder + "/smaps_rollup", kRollupFields, memory);
  // The mark is moved when pages go away, so it may lag behind what is there now.
  if (memory.peak_rss < memory.rss) memory.peak_rss = memory.rss;
  return memory;
}

bool reset_peak_rss() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace quire
