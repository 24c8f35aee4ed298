#include "quire/bench/kernels/kernel_report.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/bench/machine/ceilings_report.h"
#include "quire/bench/text_table.h"

namespace quire::bench {
namespace {

namespace json = boost::json;

std::string share_text(const KernelTime& time) {
  return fmt::format("{:.0f} % of {}", 100 * time.share, time.memory_bound ? "read" : "peak");
}

std::vector<std::string> time_cells(const KernelTime& time) {
  return {time_text(time.seconds), fmt::format("{:.1f}", time.gbs),
          fmt::format("{:.1f}", time.gops), share_text(time)};
}

bool same(const LinearShape& a, const LinearShape& b) {
  return a.out == b.out && a.in == b.in;
}

std::string shape_table(const KernelBenchResult& result, const LinearShape& shape, bool markdown) {
  TextTable table({"weights x activations", "M", "time", "GB/s", "GOP/s", "ceiling"});
  for (const LinearResult& row : result.linear) {
    if (!same(row.shape, shape)) continue;
    std::vector<std::string> cells = {fmt::format("{} x {}", row.layout, act_name(row.act)),
                                      std::to_string(row.rows)};
    for (std::string& cell : time_cells(row.time)) cells.push_back(std::move(cell));
    table.add(std::move(cells));
  }
  return fmt::format("\n{}x{} (outputs x inputs), cold weights\n\n{}", shape.out, shape.in,
                     markdown ? table.markdown() : table.text());
}

std::string attention_table(const KernelBenchResult& result, bool markdown) {
  TextTable table({"decode attention", "KV", "context", "time", "GB/s", "GOP/s", "ceiling",
                   "raw read, GB/s", "of raw read"});
  for (const AttentionResult& row : result.attention) {
    std::vector<std::string> cells = {row.name, row.kv_dtype, std::to_string(row.context)};
    for (std::string& cell : time_cells(row.time)) cells.push_back(std::move(cell));
    cells.push_back(fmt::format("{:.1f}", row.raw_read_gbs));
    cells.push_back(fmt::format("{:.0f} %", 100 * row.raw_share));
    table.add(std::move(cells));
  }
  return "\n" + (markdown ? table.markdown() : table.text());
}

json::object time_json(const KernelTime& time, json::object row) {
  row["seconds"] = time.seconds;
  row["gbs"] = time.gbs;
  row["gops"] = time.gops;
  row["share_of_ceiling"] = time.share;
  row["bound"] = time.memory_bound ? "read" : "peak";
  return row;
}

}  // namespace

std::string format_kernels(const KernelBenchResult& result, bool markdown) {
  std::string out = format_ceilings(result.ceilings);
  std::vector<LinearShape> shapes;
  for (const LinearResult& row : result.linear) {
    bool seen = false;
    for (const LinearShape& shape : shapes) seen = seen || same(shape, row.shape);
    if (!seen) shapes.push_back(row.shape);
  }
  for (const LinearShape& shape : shapes) out += shape_table(result, shape, markdown);
  if (!result.attention.empty()) out += attention_table(result, markdown);
  return out;
}

json::object kernels_json(const KernelBenchResult& result) {
  json::array linear;
  for (const LinearResult& row : result.linear) {
    linear.push_back(time_json(row.time, {{"layout", row.layout},
                                          {"activations", act_name(row.act)},
                                          {"out", row.shape.out},
                                          {"in", row.shape.in},
                                          {"m", row.rows}}));
  }
  json::array attention;
  for (const AttentionResult& row : result.attention) {
    json::object entry = time_json(
        row.time, {{"heads", row.name}, {"kv_dtype", row.kv_dtype}, {"context", row.context}});
    entry["raw_read_gbs"] = row.raw_read_gbs;
    entry["share_of_raw_read"] = row.raw_share;
    attention.push_back(std::move(entry));
  }
  return {{"ceilings", ceilings_json(result.ceilings)},
          {"rounds", result.rounds},
          {"linear", std::move(linear)},
          {"attention", std::move(attention)}};
}

}  // namespace quire::bench
