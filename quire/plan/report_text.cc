#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "quire/plan/report.h"
#include "quire/plan/units.h"

namespace quire::plan {
namespace {

using Part = LedgerLine::Part;

std::string bytes(int64_t count) {
  return bytes_text(static_cast<double>(count));
}

class TextReport {
 public:
  explicit TextReport(const Report& report) : report_(report), plan_(*report.plan) {}

  std::string write() {
    head();
    ledger();
    ranks();
    kv();
    comparisons();
    speed();
    lines();
    traffic();
    alternatives();
    config();
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void head() {
    const auto& c = plan_.model.config;
    put("{}: {} parameters, {} layers of {}, {} heads, {} KV heads of {}, vocabulary {}{}\n",
        report_.model, count_text(plan_.parameters), c.num_layers, c.hidden_size, c.num_heads,
        c.num_kv_heads, c.head_dim, c.vocab_size, c.tie_word_embeddings ? ", tied head" : "");
    const PlanOptions& options = plan_.options;
    put("device {}: {}", options.device.name,
        options.memory_bytes > 0 ? gib_text(static_cast<double>(options.memory_bytes))
                                 : std::string("memory unknown"));
    if (options.memory_bytes > 0) {
      put(", of which {:.0f} % ({}) may be used", options.utilization * 100,
          gib_text(static_cast<double>(plan_.budget_bytes())));
    }
    put("\n");
    for (const std::string& note : plan_.model.notes) put("note: {}\n", note);
  }

  void ledger() {
    const RankLedger& rank = plan_.fullest();
    put("\n{:<24}{:>28}{:>16}{:>12}{:>12}{:>12}\n",
        plan_.ranks.size() == 1 ? std::string("memory")
                                : fmt::format("memory of rank {}", rank.share.rank),
        "format", "parameters", "bytes", "scales", "padding");
    for (const LedgerLine& line : rank.lines) {
      put("{:<24}{:>28}{:>16}{:>12}{:>12}{:>12}{}\n", line.name, line.format,
          line.parameters > 0 ? count_text(line.parameters) : "", bytes(line.bytes),
          line.scale_bytes > 0 ? bytes(line.scale_bytes) : "",
          line.padding_bytes > 0 ? bytes(line.padding_bytes) : "",
          line.estimate ? "  estimate" : "");
    }
    const auto sum = [&](const char* name, int64_t value) {
      put("{:<68}{:>12}\n", name, bytes(value));
    };
    sum("weights", rank.bytes(Part::kWeights));
    sum("everything but the KV cache", rank.fixed_bytes());
    if (!plan_.fits) {
      put("DOES NOT FIT: {}\n", plan_.problem);
      return;
    }
    sum("KV cache", plan_.pool_bytes(rank));
    sum("total", plan_.total_bytes(rank));
    const ArenaPeak& peak = rank.arena_peak;
    put("The activations are fullest at {}, with", peak.operation);
    for (size_t i = 0; i < std::min<size_t>(3, peak.live.size()); ++i) {
      put("{} {} {}", i == 0 ? "" : ",", peak.live[i].first, bytes(peak.live[i].second));
    }
    put("{}; without giving storage again {} tensors would take {}.\n",
        peak.live.size() > 3 ? ", ..." : "", peak.num_tensors, bytes(peak.sum_bytes));
    if (rank.logits_bytes > 0) {
      put("The logits of {} rows are {} of it; prompt log-probabilities take no more rows, a chunk "
          "is cut to them.\n",
          plan_.options.record.max_logits, bytes(rank.logits_bytes));
    }
  }

  void ranks() {
    if (plan_.ranks.size() == 1) return;
    put("\n{:<6}{:>12}{:>12}{:>12}{:>14}{:>12}{:>12}\n", "rank", "layers", "heads", "KV heads",
        "weights", "KV/token", "but KV");
    for (const RankLedger& rank : plan_.ranks) {
      const RankShare& s = rank.share;
      const auto span = [](int64_t first, int64_t end) {
        return fmt::format("{}-{}", first, end - 1);
      };
      put("{:<6}{:>12}{:>12}{:>12}{:>14}{:>12}{:>12}{}{}\n", s.rank,
          span(s.first_layer, s.end_layer), span(s.first_head, s.end_head),
          span(s.first_kv_head, s.end_kv_head), bytes(rank.bytes(Part::kWeights)),
          bytes(rank.kv_token_bytes), bytes(rank.fixed_bytes()),
          s.has_embedding ? " embedding" : "", s.has_head ? " head" : "");
    }
    const RankShare& s = plan_.ranks.front().share;
    put("Each rank holds {} of {} heads and {} of {} KV heads{}.\n", s.end_head - s.first_head,
        plan_.model.config.num_heads, s.end_kv_head - s.first_kv_head,
        plan_.model.config.num_kv_heads,
        s.kv_replicas > 1 ? fmt::format(" ({} ranks hold the same one)", s.kv_replicas) : "");
    int64_t least = INT64_MAX;
    for (const RankLedger& rank : plan_.ranks) least = std::min(least, rank.fixed_bytes());
    const int64_t most = plan_.fullest().fixed_bytes();
    put("The fullest rank takes {} more than the emptiest ({:.1f} %).\n", bytes(most - least),
        100.0 * static_cast<double>(most - least) / static_cast<double>(most));
  }

  void kv() {
    const RankLedger& rank = plan_.fullest();
    put("\nKV cache ({}): {} a token, {} a block of {}", kv_dtype_name(plan_.kv_dtype),
        bytes(rank.kv_token_bytes), bytes(rank.kv_block_bytes), plan_.block_tokens());
    if (!plan_.fits) {
      put(".\n");
      return;
    }
    put("; {} blocks hold {} tokens.\n", count_text(plan_.num_blocks),
        count_text(plan_.num_blocks * plan_.block_tokens()));
    put("Sequences of {} tokens at once: {:.1f}", count_text(plan_.max_model_len),
        plan_.concurrency(plan_.max_model_len));
    const int64_t expected = report_.prompt_len + report_.output_len;
    if (expected > 0 && expected < plan_.max_model_len) {
      put("; of {} + {} tokens: {:.1f}", report_.prompt_len, report_.output_len,
          plan_.concurrency(expected));
    }
    put(".\n");
  }

  void comparisons() {
    put("\n{:<26}{:>14}{:>14}{:>14}\n", "beside the textbook", "textbook", "counted", "difference");
    for (const Comparison& c : plan_.comparisons) {
      put("{:<26}{:>14}{:>14}{:>14}\n  = {}\n  {}\n", c.name, bytes_text(c.textbook),
          bytes(c.counted), bytes_text(c.difference()), c.formula, c.why);
    }
  }

  void speed() {
    if (!report_.forecast) {
      put("\nSpeed: the ceilings of this device are not known; `quire bench ceilings` measures "
          "them, --device NAME takes another's.\n");
      return;
    }
    const Forecast& f = *report_.forecast;
    const Device& device = plan_.options.device;
    put("\nroofline of {}: {} fp32, {} bf16, {} int8; memory {}", device.name,
        rate_text(device.peak_fp32, "op/s"), rate_text(device.peak_bf16, "op/s"),
        rate_text(device.peak_int8, "op/s"), rate_text(device.memory_bandwidth(), "B/s"));
    put("; ridge {:.0f} (bf16), {:.0f} (int8) op/B\n", device.ridge(backend::ActType::kBF16),
        device.ridge(backend::ActType::kI8));
    for (const MemoryLevel& level : device.levels) {
      put("  {:<18}{:>12}{:>14}\n", level.name,
          level.bytes > 0 ? bytes(level.bytes) : bytes(plan_.options.device.memory_bytes),
          level.bytes_per_second > 0 ? rate_text(level.bytes_per_second, "B/s") : "rate unknown");
    }
    for (const Link* link : {&device.link, &device.host}) {
      if (link->bytes_per_second <= 0) continue;
      put("  {:<18}{:>12}{:>14} each way{}\n", link->name, "",
          rate_text(link->bytes_per_second, "B/s"),
          link == &device.host ? ", to the host" : ", between ranks");
    }
    put("prompt of {}: first token after {} to {} ({:.0f} to {:.0f} tokens/s)\n", f.prompt_len,
        time_text(f.ttft.fast), time_text(f.ttft.slow),
        static_cast<double>(f.prompt_len) / f.ttft.slow,
        static_cast<double>(f.prompt_len) / f.ttft.fast);
    put("{:>7}{:>10}{:>22}{:>24}{:>14}\n", "batch", "context", "between tokens", "tokens/s",
        "op/B");
    for (const BatchPoint& p : f.batches) {
      put("{:>7}{:>10}{:>22}{:>24}{:>14.1f}{}\n", p.batch, p.context,
          time_text(p.itl.fast) + " - " + time_text(p.itl.slow),
          fmt::format("{:.1f} - {:.1f}", p.slow_tokens_per_s(), p.fast_tokens_per_s()),
          p.intensity(), p.fits ? "" : "  does not fit");
    }
  }

  void lines() {
    if (!report_.forecast) return;
    for (const auto& [name, step] : {std::pair{"decode, batch 1", &report_.forecast->decode},
                                     std::pair{"prefill", &report_.forecast->prefill}}) {
      put("\n{} ({} token{}): {} and {} a step\n{:<18}{:>6}{:>10}{:>10}{:>10}{:>12}{:>11}{:>9}  "
          "{}\n",
          name, step->tokens, step->tokens == 1 ? "" : "s",
          rate_text(static_cast<double>(step->operations), "op"), bytes(step->bytes), "line",
          "count", "op", "bytes", "op/B", "ceiling", "time", "share", "bound by");
      for (const LineClass& each : classes_of(step->lines)) {
        const LineTime& sum = each.sum;
        put("{:<18}{:>6}{:>10}{:>10}{:>10.2f}{:>12}{:>11}{:>7.1f} %  {}\n", each.name, each.count,
            rate_text(static_cast<double>(sum.operations), ""), bytes(sum.bytes), sum.intensity,
            rate_text(sum.ceiling, "op/s"), time_text(sum.seconds),
            100 * sum.seconds / std::max(1e-12, step->compute_seconds),
            sum.memory_bound ? sum.level : "arithmetic");
      }
      if (step->link_seconds > 0) {
        put("{:<18}{:>70}\n", "between ranks", time_text(step->link_seconds));
      }
      put("{:<18}{:>70}\n",
          plan_.options.device.kind == Device::Kind::kGpu ? "launches" : "barriers",
          time_text(step->overhead_seconds));
    }
  }

  void traffic() {
    if (!report_.traffic) return;
    const TrafficResult& t = *report_.traffic;
    put("\n{} users, one request after another ({} requests played on the scheduler):\n",
        report_.users, t.requests);
    put("  {:.1f} running on average, {} at most; {:.1f} waiting; KV cache {:.0f} % full, {:.0f} % "
        "at most\n",
        t.mean_running, t.peak_running, t.mean_waiting, 100 * t.mean_kv_usage,
        100 * t.peak_kv_usage);
    put("  a request is preempted with probability {:.3f} ({} preemptions)\n",
        t.preemption_probability(), t.preemptions);
    if (t.refused > 0) put("  {} requests are too long and refused\n", t.refused);
    if (t.seconds > 0) {
      put("  about {:.1f} tokens/s; first token after {} (p50), {} (p99); between tokens {} "
          "(mean), "
          "{} (p99)\n",
          t.tokens_per_s, time_text(t.ttft_p50), time_text(t.ttft_p99), time_text(t.itl_mean),
          time_text(t.itl_p99));
    }
  }

  void alternatives() {
    if (report_.alternatives.empty()) return;
    put("\nwhat would fit, the cheapest first:\n");
    for (const Alternative& each : report_.alternatives) {
      if (!each.fits) continue;
      put("  {:<32}{:>10} a rank beside the KV cache, which holds {:.1f} sequences of {}; {}\n",
          each.change, bytes(each.rank_bytes), each.sequences, each.tokens_each, each.cost);
    }
    bool headed = false;
    for (const Alternative& each : report_.alternatives) {
      if (each.fits) continue;
      put("{}{}", headed ? ", " : "not enough alone: ", each.change);
      headed = true;
    }
    if (headed) put("\n");
  }

  void config() {
    if (!report_.config) return;
    put("\n{}\n", report_.config->command_line(report_.model));
    for (const Setting& setting : report_.config->settings) {
      put("  {:<24}{:<14}{}\n", setting.key, setting.key == "model" ? "" : setting.value,
          setting.why);
    }
  }

  const Report& report_;
  const Plan& plan_;
  std::string text_;
};

}  // namespace

std::string report_text(const Report& report) {
  return TextReport(report).write();
}

}  // namespace quire::plan
