#include "quire/llm/available_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace quire::llm {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

/// The number a file begins with; nothing when there is none ("max").
std::optional<int64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// The number behind `key` in a file of "key value" lines.
std::optional<int64_t> read_field(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    int64_t value = 0;
    if (word == key && file >> value) return value;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* file_cache;  // the field of memory.stat that counts what can be dropped
};
constexpr CgroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr CgroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file"};

int64_t left_in(const fs::path& folder, const CgroupFiles& files) {
  const std::optional<int64_t> limit = read_number(folder / files.limit);
  const std::optional<int64_t> usage = read_number(folder / files.usage);
  if (!limit || !usage) return kUnlimited;
  const int64_t droppable = read_field(folder / "memory.stat", files.file_cache).value_or(0);
  return std::max<int64_t>(0, *limit - (*usage - std::min(droppable, *usage)));
}

/// The least left in `path` (as /proc/self/cgroup has it) and every group above it. Inside a
/// container the mount's root is the process's own group, and `path` may not exist below it.
int64_t left_along(const fs::path& mount, const std::string& path, const CgroupFiles& files) {
  int64_t least = left_in(mount, files);
  fs::path folder = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    folder /= part;
    std::error_code error;
    if (!fs::is_directory(folder, error)) break;
    least = std::min(least, left_in(folder, files));
  }
  return least;
}

int64_t left_in_cgroups(const fs::path& root) {
  int64_t least = kUnlimited;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, left_along(root / "sys/fs/cgroup", path, kVersion2));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      least = std::min(least, left_along(root / "sys/fs/cgroup/memory", path, kVersion1));
    }
  }
  return least;
}

}  // namespace

int64_t available_memory(const std::string& root) {
  const fs::path base(root);
  const std::optional<int64_t> kib = read_field(base / "proc/meminfo", "MemAvailable:");
  const int64_t system = kib ? *kib * 1024 : kUnlimited;
  const int64_t least = std::min(system, left_in_cgroups(base));
  return least == kUnlimited ? 0 : least;
}

}  // namespace quire::llm
