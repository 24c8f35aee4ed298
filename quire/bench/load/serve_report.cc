#include "quire/bench/load/serve_report.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

namespace quire::bench {
namespace {

namespace json = boost::json;

struct Row {
  const char* name;
  const char* key;
  Summary ServeReport::*summary;
};
constexpr std::array<Row, 4> kRows = {{{"time to first token (TTFT)", "ttft", &ServeReport::ttft},
                                       {"time per output token (TPOT)", "tpot", &ServeReport::tpot},
                                       {"inter-token latency (ITL)", "itl", &ServeReport::itl},
                                       {"end to end (E2E)", "e2el", &ServeReport::e2e}}};

double rate(int64_t count, double duration_s) {
  return duration_s > 0 ? static_cast<double>(count) / duration_s : 0;
}

}  // namespace

double ServeReport::requests_per_s() const {
  return rate(num_requests - num_failed, duration_s);
}
double ServeReport::output_tokens_per_s() const {
  return rate(output_tokens, duration_s);
}
double ServeReport::total_tokens_per_s() const {
  return rate(input_tokens + output_tokens, duration_s);
}

ServeReport make_report(std::span<const StreamRecord> records) {
  ServeReport report;
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> itl;
  std::vector<double> e2e;
  for (const StreamRecord& record : records) {
    ++report.num_requests;
    report.duration_s = std::max(report.duration_s, record.done_s);
    if (!record.ok()) {
      ++report.num_failed;
      ++report.errors[record.error];
      continue;
    }
    report.input_tokens += record.prompt_tokens;
    report.output_tokens += record.output_tokens;
    report.cached_tokens += record.cached_tokens;
    ttft.push_back(record.ttft_s() * 1e3);
    e2e.push_back(record.e2e_s() * 1e3);
    const auto& times = record.token_times_s;
    if (record.output_tokens > 1) {
      tpot.push_back((record.done_s - times.front()) * 1e3 /
                     static_cast<double>(record.output_tokens - 1));
    }
    for (size_t i = 1; i < times.size(); ++i) itl.push_back((times[i] - times[i - 1]) * 1e3);
  }
  report.ttft = summarize(std::move(ttft));
  report.tpot = summarize(std::move(tpot));
  report.itl = summarize(std::move(itl));
  report.e2e = summarize(std::move(e2e));
  return report;
}

std::string format_report(const ServeReport& report) {
  std::string out = fmt::format(
      "requests    {} done, {} failed, in {:.2f} s\n"
      "tokens      {} in ({} from the prefix cache), {} out\n"
      "throughput  {:.2f} requests/s, {:.1f} output tokens/s, {:.1f} tokens/s in all\n\n"
      "{:<30}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
      report.num_requests - report.num_failed, report.num_failed, report.duration_s,
      report.input_tokens, report.cached_tokens, report.output_tokens, report.requests_per_s(),
      report.output_tokens_per_s(), report.total_tokens_per_s(), "milliseconds", "mean", "p50",
      "p90", "p95", "p99", "max");
  for (const Row& row : kRows) {
    const Summary& s = report.*row.summary;
    out += fmt::format("{:<30}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}\n", row.name,
                       s.mean, s.p50, s.p90, s.p95, s.p99, s.max);
  }
  for (const auto& [message, count] : report.errors) {
    out += fmt::format("error, {} times: {}\n", count, message.substr(0, 300));
  }
  return out;
}

json::object report_json(const ServeReport& report) {
  json::object out;
  out["duration"] = report.duration_s;
  out["completed"] = report.num_requests - report.num_failed;
  out["failed"] = report.num_failed;
  out["total_input_tokens"] = report.input_tokens;
  out["total_output_tokens"] = report.output_tokens;
  out["total_cached_tokens"] = report.cached_tokens;
  out["request_throughput"] = report.requests_per_s();
  out["output_throughput"] = report.output_tokens_per_s();
  out["total_token_throughput"] = report.total_tokens_per_s();
  for (const Row& row : kRows) {
    const Summary& s = report.*row.summary;
    const std::pair<const char*, double> values[] = {{"mean", s.mean}, {"p50", s.p50},
                                                     {"p90", s.p90},   {"p95", s.p95},
                                                     {"p99", s.p99},   {"max", s.max}};
    for (const auto& [name, value] : values) out[fmt::format("{}_{}_ms", name, row.key)] = value;
  }
  json::object errors;
  for (const auto& [message, count] : report.errors) errors[message] = count;
  out["errors"] = std::move(errors);
  return out;
}

}  // namespace quire::bench
