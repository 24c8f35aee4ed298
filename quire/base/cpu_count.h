// CpuCount: how many compute threads this process may usefully run, and on which processors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

/// Processors this process may run on (its affinity mask), ascending.
std::vector<int> allowed_cpus();

/// "0-3,6" -> 0, 1, 2, 3, 6, in the order given; nothing when `list` is no such list, or names a
/// processor twice.
std::optional<std::vector<int>> parse_cpu_list(std::string_view list);

/// Processors' worth of time the control groups of this process grant, e.g. 1.5; 0 when unlimited.
/// `membership` is the text of /proc/self/cgroup and `root` the folder cgroups are mounted in
/// (/sys/fs/cgroup); version 1 (cpu.cfs_quota_us) and 2 (cpu.max) are read, and every ancestor
/// counts: the smallest grant holds.
double cgroup_cpu_quota(std::string_view membership, const std::string& root);

/// Distinct cores among `cpus` by (package, core) of `root`/cpuN/topology
/// (/sys/devices/system/cpu): hardware threads of one core count once. Processors whose topology
/// can't be read count as cores.
int physical_cores(const std::vector<int>& cpus, const std::string& root);

/// min(affinity, control group quota rounded down, physical cores), at least 1: more threads than
/// that only wait for each other.
int default_thread_count();

}  // namespace quire
