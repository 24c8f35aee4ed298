// available_memory: how much memory this process could still take, by the kernel and its cgroups.
#pragma once

#include <cstdint>
#include <string>

namespace quire::llm {

/// The least of /proc/meminfo's MemAvailable and what every cgroup (v2 or v1) above this process
/// has left, in bytes; 0 when nothing says. `root` is "/" but for tests.
int64_t available_memory(const std::string& root = "/");

}  // namespace quire::llm
