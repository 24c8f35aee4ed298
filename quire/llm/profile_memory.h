// profile_memory: runs a function and tells what memory it took, by tag and as the system sees it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "quire/base/memory_ledger.h"
#include "quire/base/process_memory.h"

namespace quire::llm {

/// One moment.
struct MemoryState {
  ProcessMemory process;
  MemorySnapshot ledger;
};
MemoryState read_memory(const MemoryLedger* ledger);

struct MemoryProfile {
  std::string name;
  MemoryState before;
  MemoryState after;
  int64_t peak_rss = 0;  // the most that was resident at once, from before to after
  /// The kernel's own high-water mark; else read every millisecond: shorter peaks are missed.
  bool peak_is_exact = false;

  int64_t increase() const { return after.process.rss - before.process.rss; }
  int64_t peak_increase() const { return peak_rss - before.process.rss; }
};

struct ProfileMemoryOptions {
  std::string name = "profile";
  MemoryLedger* ledger = nullptr;  // may be null: the process alone. Its peaks begin anew
  std::FILE* out = stderr;         // where the summary goes; may be null
  bool sample_only = false;        // as if the kernel's mark could not begin anew
};

/// Calls `function` and returns what was there before and after it, and the most in between. What
/// it throws is thrown on, without a summary. The process is measured as a whole: what other
/// threads take meanwhile counts too. One call at a time, since the high-water mark is the
/// process's.
MemoryProfile profile_memory(const std::function<void()>& function,
                             const ProfileMemoryOptions& options = {});

/// The process before, after, its increase and peak; huge pages, PSS.
std::string format_process(const MemoryProfile& profile);
/// One line a tag that was ever used: current, peak, allocated, freed.
std::string format_tags(const MemorySnapshot& ledger);

}  // namespace quire::llm
