#include "quire/base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace quire {
namespace {

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::optional<int64_t> read_number(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

/// "150000 100000" -> 1.5; "max 100000" -> 0.
double quota_of_v2(const std::string& folder) {
  const std::optional<std::string> text = read_text(folder + "/cpu.max");
  if (!text) return 0;
  std::istringstream words(*text);
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

double quota_of_v1(const std::string& folder) {
  const std::optional<int64_t> quota = read_number(folder + "/cpu.cfs_quota_us");
  const std::optional<int64_t> period = read_number(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

double smaller_grant(double a, double b) {
  if (a == 0) return b;
  if (b == 0) return a;
  return std::min(a, b);
}

/// The smallest grant from `base + path` up to `base`. Inside a container the path of /proc may not
/// exist below the mount: then only `base` answers.
double smallest_up_the_tree(const std::string& base, std::string path,
                            double (*quota_of)(const std::string&)) {
  double grant = 0;
  while (true) {
    grant = smaller_grant(grant, quota_of(base + path));
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return grant;
    path.resize(slash);
  }
}

bool lists_cpu_controller(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

std::vector<int> allowed_cpus() {
  // The kernel's mask may be wider than cpu_set_t: grow until it fits.
  for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(capacity));
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    CPU_ZERO_S(bytes, set);
    std::vector<int> cpus;
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !ok && errno == EINVAL;
    for (int cpu = 0; ok && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (!too_small) return cpus;
  }
  return {};
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view list) {
  constexpr int kMaxCpu = 1 << 20;
  std::vector<int> cpus;
  const char* at = list.data();
  const char* const end = at + list.size();
  const auto read_cpu = [&](int& cpu) {
    const auto [rest, error] = std::from_chars(at, end, cpu);
    at = rest;
    return error == std::errc{} && cpu >= 0 && cpu < kMaxCpu;
  };
  while (true) {
    int first = 0;
    if (!read_cpu(first)) return std::nullopt;
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!read_cpu(last) || last < first) return std::nullopt;
    }
    for (int cpu = first; cpu <= last; ++cpu) {
      if (std::find(cpus.begin(), cpus.end(), cpu) != cpus.end()) return std::nullopt;
      cpus.push_back(cpu);
    }
    if (at == end) return cpus;
    if (*at++ != ',') return std::nullopt;
  }
}

double cgroup_cpu_quota(std::string_view membership, const std::string& root) {
  double grant = 0;
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      grant = smaller_grant(grant, smallest_up_the_tree(root, path, quota_of_v2));
    } else if (lists_cpu_controller(controllers)) {
      for (const char* mount : {"/cpu", "/cpu,cpuacct"}) {
        grant = smaller_grant(grant, smallest_up_the_tree(root + mount, path, quota_of_v1));
      }
    }
  }
  return grant;
}

int physical_cores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::pair<int64_t, int64_t>> cores;
  int unknown = 0;
  for (const int cpu : cpus) {
    const std::string folder = root + "/cpu" + std::to_string(cpu) + "/topology";
    const std::optional<int64_t> package = read_number(folder + "/physical_package_id");
    const std::optional<int64_t> core = read_number(folder + "/core_id");
    if (package && core) {
      cores.emplace(*package, *core);
    } else {
      ++unknown;
    }
  }
  return static_cast<int>(cores.size()) + unknown;
}

int default_thread_count() {
  int count = physical_cores(allowed_cpus(), "/sys/devices/system/cpu");
  const double quota =
      cgroup_cpu_quota(read_text("/proc/self/cgroup").value_or(""), "/sys/fs/cgroup");
  if (quota > 0) count = std::min(count, static_cast<int>(quota));
  return std::max(count, 1);
}

}  // namespace quire
