#include "quire/llm/profile_memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>

#include <fmt/format.h>

#include "quire/llm/memory_report.h"

namespace quire::llm {
namespace {

/// Reads the resident size every millisecond while it lives.
class PeakSampler {
 public:
  PeakSampler() : thread_([this] { run(); }) {}
  ~PeakSampler() { stop(); }
  PeakSampler(const PeakSampler&) = delete;
  PeakSampler& operator=(const PeakSampler&) = delete;

  int64_t stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return peak_;
  }

 private:
  void run() {
    while (!stopping_) {
      peak_ = std::max(peak_, read_process_memory().rss);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::atomic<bool> stopping_{false};
  int64_t peak_ = 0;
  std::thread thread_;
};

/// "+1.50 GiB", "-12 KiB".
std::string signed_bytes(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + format_bytes(bytes < 0 ? -bytes : bytes);
}

}  // namespace

MemoryState read_memory(const MemoryLedger* ledger) {
  return {.process = read_process_memory(),
          .ledger = ledger == nullptr ? MemorySnapshot{} : ledger->snapshot()};
}

MemoryProfile profile_memory(const std::function<void()>& function,
                             const ProfileMemoryOptions& options) {
  MemoryProfile profile;
  profile.name = options.name;
  profile.peak_is_exact = !options.sample_only && reset_peak_rss();
  if (options.ledger != nullptr) options.ledger->reset_peaks();
  profile.before = read_memory(options.ledger);
  int64_t sampled = 0;
  if (profile.peak_is_exact) {
    function();
  } else {
    PeakSampler sampler;
    function();
    sampled = sampler.stop();
  }
  profile.after = read_memory(options.ledger);
  profile.peak_rss = std::max({profile.before.process.rss, profile.after.process.rss,
                               profile.peak_is_exact ? profile.after.process.peak_rss : sampled});
  if (options.out != nullptr) {
    fmt::print(options.out, "{}", format_process(profile));
    if (options.ledger != nullptr) {
      fmt::print(options.out, "\n{}", format_tags(profile.after.ledger));
    }
  }
  return profile;
}

std::string format_process(const MemoryProfile& profile) {
  const ProcessMemory& before = profile.before.process;
  const ProcessMemory& after = profile.after.process;
  std::string text =
      fmt::format("{}: memory\n{:<16}{:>11}{:>11}{:>12}{:>11}\n", profile.name, "process", "before",
                  "after", "increase", profile.peak_is_exact ? "peak" : "peak (1 ms)");
  const auto line = [&](std::string_view name, int64_t first, int64_t last, std::string peak) {
    fmt::format_to(std::back_inserter(text), "{:<16}{:>11}{:>11}{:>12}{:>11}\n", name,
                   format_bytes(first), format_bytes(last), signed_bytes(last - first), peak);
  };
  line("resident (RSS)", before.rss, after.rss, format_bytes(profile.peak_rss));
  line("  anonymous", before.anonymous, after.anonymous, "");
  line("  in huge pages", before.huge_pages, after.huge_pages, "");
  line("  files", before.file, after.file, "");
  line("share (PSS)", before.pss, after.pss, "");
  return text;
}

std::string format_tags(const MemorySnapshot& ledger) {
  std::string text = fmt::format("{:<16}{:>11}{:>11}{:>12}{:>11}\n", "by tag", "current", "peak",
                                 "allocated", "freed");
  const auto line = [&text](std::string_view name, const MemoryCount& count) {
    fmt::format_to(std::back_inserter(text), "{:<16}{:>11}{:>11}{:>12}{:>11}\n", name,
                   format_bytes(count.current), format_bytes(count.peak),
                   format_bytes(count.allocated), format_bytes(count.freed));
  };
  for (int i = 0; i < kNumMemoryTags; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    if (ledger[tag].allocated > 0) line(memory_tag_name(tag), ledger[tag]);
  }
  line("total", ledger.total);
  return text;
}

}  // namespace quire::llm
