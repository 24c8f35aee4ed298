// ProcessMemory: what the operating system says that this process occupies, to check the ledger by.
#pragma once

#include <cstdint>
#include <string>

namespace quire {

/// Bytes, as /proc has them; 0 where the kernel does not tell.
struct ProcessMemory {
  int64_t rss = 0;         // resident pages of every kind
  int64_t pss = 0;         // the same, shared pages divided among those that share them
  int64_t peak_rss = 0;    // the high-water mark of rss, since the start or reset_peak_rss()
  int64_t anonymous = 0;   // resident and no file's: heap, buffers, stacks
  int64_t file = 0;        // resident pages of mapped files; the kernel may drop them
  int64_t huge_pages = 0;  // of `anonymous`, what lies in 2 MiB pages
  int64_t swap = 0;
  int64_t address_space = 0;  // everything mapped, touched or not
};

/// Reads `folder`/status and `folder`/smaps_rollup. Walking the page tables takes about a
/// millisecond for each GiB that is not in huge pages.
ProcessMemory read_process_memory(const std::string& folder = "/proc/self");

/// Lets the high-water mark begin anew at what is resident now. False where the system refuses.
bool reset_peak_rss();

}  // namespace quire
