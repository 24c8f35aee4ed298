#include "quire/llm/profile_json.h"

namespace quire::llm {
namespace {

namespace json = boost::json;

json::object count_json(const MemoryCount& count) {
  return {{"current", count.current},
          {"peak", count.peak},
          {"allocated", count.allocated},
          {"freed", count.freed}};
}

double ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

double ratio(int64_t amount, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(amount) / static_cast<double>(whole);
}

}  // namespace

json::object ledger_json(const MemorySnapshot& ledger) {
  json::object tags;
  for (int i = 0; i < kNumMemoryTags; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    tags[memory_tag_name(tag)] = count_json(ledger[tag]);
  }
  return {{"tags", std::move(tags)}, {"total", count_json(ledger.total)}};
}

json::object process_json(const ProcessMemory& process) {
  return {{"rss", process.rss},           {"pss", process.pss},
          {"peak_rss", process.peak_rss}, {"anonymous", process.anonymous},
          {"file", process.file},         {"huge_pages", process.huge_pages},
          {"swap", process.swap},         {"address_space", process.address_space}};
}

json::object report_json(const MemoryReport& report) {
  return {{"weights", report.weights},
          {"packed copies", report.packed_copies},
          {"kv cache", report.kv_cache},
          {"arena", report.arena},
          {"worker scratch", report.worker_scratch},
          {"tokenizer", report.tokenizer},
          {"other", report.other},
          {"total", report.total()}};
}

json::object memory_profile_json(const MemoryProfile& profile) {
  return {{"name", profile.name},
          {"before", process_json(profile.before.process)},
          {"after", process_json(profile.after.process)},
          {"increase", profile.increase()},
          {"peak_rss", profile.peak_rss},
          {"peak_is_exact", profile.peak_is_exact},
          {"ledger", ledger_json(profile.after.ledger)}};
}

json::object step_profile_json(const StepProfiler& profiler, StepClass step_class) {
  const StepTotals& totals = profiler.totals(step_class);
  json::array operations;
  for (const ProfileLine& line : totals.lines) {
    const OpTotals& of = line.totals;
    json::object entry{{"name", line.name},
                       {"kind", line.kind},
                       {"calls", of.calls},
                       {"ms", ms(of.ns)},
                       {"share", ratio(of.ns, totals.forward_ns)},
                       {"bytes", of.bytes()},
                       {"operations", of.operations},
                       {"gb_s", ratio(of.bytes(), of.ns)},
                       {"gop_s", ratio(of.operations, of.ns)}};
    if (of.ideal_ns > 0 && of.ns > 0)
      entry["of_roofline"] = of.ideal_ns / static_cast<double>(of.ns);
    operations.push_back(std::move(entry));
  }
  return {{"steps", totals.steps},
          {"tokens", totals.tokens},
          {"step_ms", ms(totals.step_ns)},
          {"forward_ms", ms(totals.forward_ns)},
          {"sample_ms", ms(totals.sample_ns)},
          {"operations", std::move(operations)}};
}

}  // namespace quire::llm
