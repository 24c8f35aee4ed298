#include "quire/llm/memory_report.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace quire::llm {

std::string format_bytes(int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string format_report(const MemoryReport& report) {
  std::string text;
  const auto line = [&text](std::string_view name, int64_t bytes, std::string_view note) {
    text += fmt::format("{:<15}{:>10}{}{}\n", name, format_bytes(bytes), note.empty() ? "" : "  ",
                        note);
  };
  line("weights", report.weights, "");
  line("packed copies", report.packed_copies, "");
  line("kv cache", report.kv_cache, "reserved; a server commits it while idle");
  line("arena", report.arena, "activations and scratch of one step");
  line("worker scratch", report.worker_scratch, "each compute thread's own");
  line("tokenizer", report.tokenizer, "");
  line("other", report.other, "sampling");
  line("total", report.total(),
       report.available > 0 ? fmt::format("of {} available", format_bytes(report.available)) : "");
  if (report.swap_space > 0) {
    line("swap space", report.swap_space,
         report.swap_folder.empty()
             ? "reserved beside it; used when the KV cache is full"
             : "on disk; used when the KV cache is full: " + report.swap_folder);
  }
  const int64_t tokens = report.num_blocks * report.block_tokens;
  text += fmt::format(
      "The KV cache holds {} tokens in {} blocks of {}: {:.1f} sequences of {} tokens.\n", tokens,
      report.num_blocks, report.block_tokens,
      static_cast<double>(tokens) / static_cast<double>(report.max_model_len),
      report.max_model_len);
  return text;
}

}  // namespace quire::llm
