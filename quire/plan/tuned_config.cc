#include "quire/plan/tuned_config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "quire/plan/units.h"

namespace quire::plan {
namespace {

using backend::ActType;

/// Collects settings; each function below explains one key.
class Tuner {
 public:
  Tuner(const Plan& plan, const std::optional<Forecast>& forecast, int64_t expected_tokens)
      : plan_(plan),
        forecast_(forecast),
        expected_(std::clamp<int64_t>(expected_tokens > 0 ? expected_tokens : plan.max_model_len, 1,
                                      plan.max_model_len)) {}

  TunedConfig run(const std::string& model) {
    add("model", model,
        fmt::format("{} parameters, {} layers.", count_text(plan_.parameters),
                    plan_.model.config.num_layers));
    add_types();
    add_parallel();
    add_memory();
    add_lengths();
    add_batch();
    add_paging();
    add_rest();
    return std::move(config_);
  }

 private:
  const Device& device() const { return plan_.options.device; }
  bool gpu() const { return device().kind == Device::Kind::kGpu; }

  void add(std::string key, std::string value, std::string why) {
    config_.settings.push_back({std::move(key), std::move(value), std::move(why)});
  }

  int64_t weight_bytes() const { return plan_.fullest().bytes(LedgerLine::Part::kWeights); }

  void add_types() {
    const std::string wanted = plan_.options.record.dtype;
    const std::string dtype = gpu() && wanted == "auto" ? "bfloat16" : wanted;
    add("dtype", dtype,
        fmt::format(
            "The weights take {} a rank ({}); {}.", gib_text(static_cast<double>(weight_bytes())),
            plan_.weight_format,
            dtype == "auto"
                ? "auto holds each as narrow as it can exactly be held"
                : fmt::format("{} decides how those that are not quantized are held", dtype)));
    add("kv_cache_dtype", std::string(kv_dtype_name(plan_.kv_dtype)),
        fmt::format("A token's keys and values take {} a rank in {} layers of {} KV heads.",
                    bytes_text(static_cast<double>(plan_.fullest().kv_token_bytes)),
                    plan_.fullest().share.end_layer - plan_.fullest().share.first_layer,
                    plan_.fullest().share.end_kv_head - plan_.fullest().share.first_kv_head));
  }

  void add_parallel() {
    const RankLedger& rank = plan_.fullest();
    const int32_t tp = plan_.options.record.tensor_parallel;
    add("tensor_parallel_size", fmt::format("{}", tp),
        tp == 1
            ? fmt::format("The model fits one rank: {} of {} beside the KV cache.",
                          gib_text(static_cast<double>(rank.fixed_bytes())),
                          gib_text(static_cast<double>(plan_.budget_bytes())))
            : fmt::format("Each rank holds {} of {} heads and {} of {} KV heads.",
                          rank.share.end_head - rank.share.first_head, plan_.model.config.num_heads,
                          rank.share.end_kv_head - rank.share.first_kv_head,
                          plan_.model.config.num_kv_heads));
    const int32_t pp = plan_.options.record.pipeline_parallel;
    if (pp > 1) {
      add("pipeline_parallel_size", fmt::format("{}", pp),
          fmt::format("Each stage holds about {} of {} layers.", plan_.model.config.num_layers / pp,
                      plan_.model.config.num_layers));
    }
  }

  void add_memory() {
    const double budget = static_cast<double>(plan_.budget_bytes());
    add("gpu_memory_utilization", fmt::format("{}", plan_.options.utilization),
        fmt::format("{} of {} may be used; the rest is for what a plan cannot count.",
                    gib_text(budget), gib_text(static_cast<double>(plan_.options.memory_bytes))));
    if (gpu()) return;
    const int64_t pool = plan_.pool_bytes(plan_.fullest());
    add("kv_cache_memory_bytes", fmt::format("{}", pool),
        fmt::format("{} blocks of {} tokens: {} tokens at once.", plan_.num_blocks,
                    plan_.block_tokens(), plan_.num_blocks * plan_.block_tokens()));
  }

  void add_lengths() {
    add("max_model_len", fmt::format("{}", plan_.max_model_len),
        fmt::format("A sequence of that length takes {} of the KV cache's {}; the model's own "
                    "limit is {}.",
                    bytes_text(static_cast<double>(plan_.sequence_bytes(plan_.max_model_len))),
                    bytes_text(static_cast<double>(plan_.pool_bytes(plan_.fullest()))),
                    plan_.model.config.max_position));
    const int64_t tokens = plan_.options.record.max_tokens;
    const double arena = static_cast<double>(plan_.fullest().bytes(LedgerLine::Part::kArena));
    std::string why =
        fmt::format("Activations of a step take {} for {} tokens", bytes_text(arena), tokens);
    if (device().has_ceilings()) {
      why += fmt::format(
          ", and a weight read serves them all: about {:.0f} tokens a step are "
          "enough to be bound by arithmetic",
          saturating_tokens());
    }
    add("max_num_batched_tokens", fmt::format("{}", tokens), why + ".");
  }

  /// Tokens at which 2 operations a weight and token reach the ridge.
  double saturating_tokens() const {
    const StageProgram& stage = plan_.stages.front();
    ActType act = ActType::kBF16;
    int64_t parameters = 0;
    int64_t bytes = 0;
    for (const auto& weight : stage.program.weights) {
      parameters += weight->spec.in * weight->spec.out;
      bytes += weight->bytes();
      if (weight->spec.layout != backend::Layout::kDense && !gpu()) act = ActType::kI8;
    }
    return device().ridge(act) * static_cast<double>(bytes) / (2 * static_cast<double>(parameters));
  }

  void add_batch() {
    const double held = plan_.concurrency(expected_);
    const auto most = static_cast<int64_t>(std::max(1.0, std::floor(held)));
    const int64_t seqs = std::min<int64_t>(most, plan_.options.max_num_seqs);
    std::string why =
        fmt::format("The KV cache holds {:.1f} sequences of {} tokens", held, expected_);
    if (forecast_) {
      const auto at = std::find_if(forecast_->batches.begin(), forecast_->batches.end(),
                                   [seqs](const BatchPoint& p) { return p.batch >= seqs; });
      if (at != forecast_->batches.end()) {
        why += fmt::format("; with {} a step takes {} to {}", at->batch, time_text(at->itl.fast),
                           time_text(at->itl.slow));
      }
    }
    add("max_num_seqs", fmt::format("{}", seqs), why + ".");
    why = "A long prompt is cut to the step's tokens, so that running sequences go on beside it";
    if (forecast_) {
      why += fmt::format(" instead of waiting {} for a prompt of {}",
                         time_text(forecast_->ttft.middle()), forecast_->prompt_len);
    }
    add("enable_chunked_prefill", "true", why + ".");
  }

  void add_paging() {
    const double block = static_cast<double>(plan_.fullest().kv_block_bytes);
    add("block_size", fmt::format("{}", plan_.block_tokens()),
        fmt::format("A block takes {} over the rank's layers, of which a sequence leaves half "
                    "unused on average.",
                    bytes_text(block)));
    const double sequence = static_cast<double>(plan_.sequence_bytes(expected_));
    if (gpu() && device().host.bytes_per_second > 0) {
      std::string why = fmt::format(
          "4 GiB of host memory hold {:.0f} preempted sequences of {} "
          "tokens; one comes back in {}",
          4.0 * 1024 * 1024 * 1024 / sequence, expected_,
          time_text(sequence / device().host.bytes_per_second));
      if (forecast_) {
        const double again = forecast_->ttft.middle() * static_cast<double>(expected_) /
                             static_cast<double>(forecast_->prompt_len);
        why += fmt::format(" over {}, computing it again takes about {}", device().host.name,
                           time_text(again));
      }
      add("swap_space", "4", why + ".");
      return;
    }
    add("swap_space", "0",
        fmt::format("On a CPU swapped blocks lie in the same memory as the cache: {} for each "
                    "sequence of {} tokens are better spent on the cache itself.",
                    bytes_text(sequence), expected_));
  }

  void add_rest() {
    const bool eager = plan_.options.enforce_eager || !gpu();
    std::string why = "There are no graphs to capture on a CPU";
    if (gpu()) {
      size_t ops = 0;
      for (const StageProgram& stage : plan_.stages) ops += stage.program.ops.size();
      why = fmt::format(
          "Graphs spare the launches of {} operations, some {} a step, for about "
          "0.75 GiB",
          ops, time_text(static_cast<double>(ops) * 5e-6));
    }
    add("enforce_eager", eager && gpu() ? "true" : "false", why + ".");
    add("disable_log_stats", "false",
        "A line every 10 s shows whether these figures hold: throughput, running and waiting "
        "sequences, KV use.");
  }

  const Plan& plan_;
  const std::optional<Forecast>& forecast_;
  const int64_t expected_;
  TunedConfig config_;
};

bool is_flag(const Setting& setting) {
  return setting.value == "true" || setting.value == "false";
}

std::string option_of(const std::string& key) {
  std::string option = "--" + key;
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

/// Words that a shell or YAML would read as more than a word are quoted.
std::string quoted(const std::string& text, char quote) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '_' || c == '-';
  });
  return plain ? text : quote + text + quote;
}

}  // namespace

const Setting* TunedConfig::find(std::string_view key) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [key](const Setting& setting) { return setting.key == key; });
  return found != settings.end() ? &*found : nullptr;
}

std::string TunedConfig::command_line(const std::string& model) const {
  std::string line = "quire serve " + quoted(model, '\'');
  for (const Setting& setting : settings) {
    if (setting.key == "model") continue;
    if (!is_flag(setting)) {
      line += fmt::format(" {} {}", option_of(setting.key), setting.value);
    } else if (setting.value == "true") {
      line += " " + option_of(setting.key);
    }
  }
  return line;
}

std::string TunedConfig::yaml() const {
  std::string text =
      "# Written by quire plan; quire serve --config runs it. Options on the command line go "
      "before "
      "it.\n";
  for (const Setting& setting : settings) {
    const std::string value = is_flag(setting) ? setting.value : quoted(setting.value, '"');
    text += fmt::format("# {}\n{}: {}\n", setting.why, setting.key, value);
  }
  return text;
}

TunedConfig tune(const Plan& plan, const std::string& model,
                 const std::optional<Forecast>& forecast, int64_t expected_tokens) {
  return Tuner(plan, forecast, expected_tokens).run(model);
}

}  // namespace quire::plan
