#include "quire/bench/machine/ceilings_report.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/bench/text_table.h"

namespace quire::bench {
namespace {

namespace json = boost::json;
using backend::cpu::Ceilings;
using backend::cpu::Figure;
using backend::cpu::LimitsTable;

std::string number(double value) {
  return fmt::format("{:.1f}", value);
}

json::object figure_json(const Figure& figure, json::object row) {
  row["median"] = figure.median;
  row["best"] = figure.best;
  return row;
}

std::string binary_size(int64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

std::string read_table(const LimitsTable& limits) {
  TextTable table({"read", "threads", "streams", "GB/s", "best"});
  for (const auto& row : limits.reads) {
    table.add({row.huge_pages ? "memory, huge pages" : "memory, 4 KiB pages",
               std::to_string(row.threads), std::to_string(row.streams), number(row.gbs.median),
               number(row.gbs.best)});
  }
  for (const auto& row : limits.caches) {
    table.add({fmt::format("L{}, {} a thread", row.level, binary_size(row.bytes)),
               std::to_string(row.threads), "4", number(row.gbs.median), number(row.gbs.best)});
  }
  return table.text();
}

std::string peak_table(const LimitsTable& limits) {
  TextTable table({"peak", "level", "instruction", "threads", "GOP/s", "best"});
  for (const auto& row : limits.peaks) {
    table.add({backend::cpu::arithmetic_name(row.arithmetic), backend::cpu::level_name(row.level),
               row.instruction, std::to_string(row.threads), number(row.gops.median),
               number(row.gops.best)});
  }
  return table.text();
}

}  // namespace

std::string format_limits(const LimitsTable& limits) {
  TextTable sync({"synchronising", "threads", "us", "best"});
  const std::string threads = std::to_string(limits.sync.threads);
  const auto time = [](double us) { return fmt::format("{:.2f}", us); };
  sync.add({"empty parallel region", threads, time(limits.sync.fork_join_us.median),
            time(limits.sync.fork_join_us.best)});
  sync.add({"barrier inside one", threads, time(limits.sync.barrier_us.median),
            time(limits.sync.barrier_us.best)});
  return fmt::format("{}, {} threads\n\n{}\n{}\n{}", limits.cpu, limits.threads, read_table(limits),
                     peak_table(limits), sync.text());
}

json::object limits_json(const LimitsTable& limits, backend::cpu::Level level) {
  json::array reads;
  for (const auto& row : limits.reads) {
    reads.push_back(figure_json(
        row.gbs,
        {{"threads", row.threads}, {"streams", row.streams}, {"huge_pages", row.huge_pages}}));
  }
  json::array caches;
  for (const auto& row : limits.caches) {
    caches.push_back(figure_json(
        row.gbs, {{"level", row.level}, {"threads", row.threads}, {"bytes", row.bytes}}));
  }
  json::array peaks;
  for (const auto& row : limits.peaks) {
    peaks.push_back(
        figure_json(row.gops, {{"arithmetic", backend::cpu::arithmetic_name(row.arithmetic)},
                               {"level", backend::cpu::level_name(row.level)},
                               {"instruction", row.instruction},
                               {"threads", row.threads}}));
  }
  return {{"cpu", limits.cpu},
          {"threads", limits.threads},
          {"read_gbs", std::move(reads)},
          {"cache_read_gbs", std::move(caches)},
          {"peak_gops", std::move(peaks)},
          {"fork_join_us", figure_json(limits.sync.fork_join_us, {})},
          {"barrier_us", figure_json(limits.sync.barrier_us, {})},
          {"summary", ceilings_json(summarize(limits, level))}};
}

std::string format_ceilings(const Ceilings& ceilings) {
  std::string out = fmt::format("{}, {}, {} threads: read {:.1f} GB/s", ceilings.cpu,
                                ceilings.level, ceilings.threads, ceilings.read_gbs);
  const auto add = [&](const char* name, double gops) {
    if (gops > 0) out += fmt::format(", {} {:.0f} GOP/s", name, gops);
  };
  add("fp32", ceilings.fp32_gflops);
  add("bf16", ceilings.bf16_gflops);
  add("int8", ceilings.int8_gops);
  return out + "\n";
}

json::object ceilings_json(const Ceilings& c) {
  return {{"cpu", c.cpu},
          {"level", c.level},
          {"threads", c.threads},
          {"read_gbs", c.read_gbs},
          {"read_gbs_one_thread", c.read_gbs_one_thread},
          {"l1_read_gbs", c.l1_read_gbs},
          {"l2_read_gbs", c.l2_read_gbs},
          {"l3_read_gbs", c.l3_read_gbs},
          {"fp32_gflops", c.fp32_gflops},
          {"bf16_gflops", c.bf16_gflops},
          {"int8_gops", c.int8_gops},
          {"fp32_gflops_one_thread", c.fp32_gflops_one_thread},
          {"bf16_gflops_one_thread", c.bf16_gflops_one_thread},
          {"int8_gops_one_thread", c.int8_gops_one_thread},
          {"fork_join_us", c.fork_join_us},
          {"barrier_us", c.barrier_us}};
}

}  // namespace quire::bench
