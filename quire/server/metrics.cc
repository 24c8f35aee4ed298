#include "quire/server/metrics.h"

#include <map>
#include <mutex>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace quire::server {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
using Seconds = std::chrono::duration<double>;

const Buckets kTtft = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                       1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
const Buckets kItl = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                      .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
const Buckets kLatency = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                          30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const Buckets kChoices = {1, 2, 5, 10, 20};
const Buckets kIteration = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

// 1, 2, 5, 10, 20, 50, ... up to `max`.
Buckets one_two_five(int64_t max) {
  Buckets buckets;
  for (int64_t decade = 1;; decade *= 10) {
    for (const int64_t step : {1, 2, 5}) {
      if (step * decade > max) return buckets.empty() ? Buckets{1} : buckets;
      buckets.push_back(static_cast<double>(step * decade));
    }
  }
}

double seconds(engine::Clock::duration duration) {
  return std::chrono::duration_cast<Seconds>(duration).count();
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(const Options& options)
      : labels{{"model_name", options.model_name}, {"engine", "0"}} {
    const Buckets lengths = one_two_five(options.max_model_len);
    running = gauge("vllm:num_requests_running", "Sequences that are being computed.");
    waiting = gauge("vllm:num_requests_waiting", "Sequences that wait for their turn.");
    kv_usage = gauge("vllm:kv_cache_usage_perc", "Share of the KV blocks in use, 0 to 1.");
    constexpr const char* kSwapUsage =
        "Share of the swap space's blocks that preempted sequences hold, 0 to 1.";
    swap_usage = gauge("quire:swap_space_usage_perc", kSwapUsage);
    cpu_usage = gauge("vllm:cpu_cache_usage_perc", kSwapUsage);  // vLLM's name of old
    token_budget = gauge("quire:token_budget",
                         "Tokens a step may have now; lowered so that running streams need not "
                         "wait longer than --target-itl.");
    ttft = histogram("vllm:time_to_first_token_seconds", "Arrival to first token.", kTtft);
    itl = histogram("vllm:inter_token_latency_seconds", "From one token of a choice to its next.",
                    kItl);
    tpot = histogram("vllm:request_time_per_output_token_seconds",
                     "Mean time a token after the first.", kItl);
    e2e = histogram("vllm:e2e_request_latency_seconds", "Arrival to last token.", kLatency);
    queue_time =
        histogram("vllm:request_queue_time_seconds", "Arrival to first scheduled.", kLatency);
    prefill =
        histogram("vllm:request_prefill_time_seconds", "First scheduled to first token.", kLatency);
    decode = histogram("vllm:request_decode_time_seconds", "First to last token.", kLatency);
    inference = histogram("vllm:request_inference_time_seconds", "First scheduled to last token.",
                          kLatency);
    prompt_length = histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", lengths);
    output_length =
        histogram("vllm:request_generation_tokens", "Generated tokens of a request.", lengths);
    params_n = histogram("vllm:request_params_n", "n of a request.", kChoices);
    params_max_tokens =
        histogram("vllm:request_params_max_tokens", "max_tokens of a request.", lengths);
    iteration = histogram("vllm:iteration_tokens_total", "Tokens computed in a step.", kIteration);
    for (int i = 1; i < engine::kNumFinishReasons; ++i) {
      finished_names[i] =
          std::string(engine::finish_reason_name(static_cast<engine::FinishReason>(i)));
      counter("vllm:request_success_total", "Choices that ended, by reason.",
              {{"finished_reason", finished_names[i]}});
    }
    prometheus::Labels config = labels;
    config["block_size"] = std::to_string(options.block_tokens);
    config["num_gpu_blocks"] = std::to_string(options.num_blocks);
    prometheus::BuildGauge()
        .Name("vllm:cache_config_info")
        .Help("The KV cache's configuration, as labels.")
        .Register(registry)
        .Add(config)
        .Set(1);
  }

  prometheus::Gauge* gauge(const char* name, const char* help) {
    return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
  }

  prometheus::Histogram* histogram(const char* name, const char* help, const Buckets& buckets) {
    return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels,
                                                                                      buckets);
  }

  prometheus::Counter& counter(const char* name, const char* help,
                               const prometheus::Labels& more = {}) {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry);
    prometheus::Labels all = labels;
    all.insert(more.begin(), more.end());
    return family.Add(all);
  }

  // The engine counts; this brings the exported counter up to its count.
  void raise(const char* name, const char* help, int64_t value,
             const prometheus::Labels& more = {}) {
    prometheus::Counter& exported = counter(name, help, more);
    const double ahead = static_cast<double>(value) - exported.Value();
    if (ahead > 0) exported.Increment(ahead);
  }

  void raise_swap_counters(const sched::SwapCounts& swap) {
    raise("quire:swap_blocks_out_total", "KV blocks copied to the swap space.", swap.blocks_out);
    raise("quire:swap_blocks_in_total", "KV blocks copied back from it.", swap.blocks_in);
    constexpr const char* kPreemptions = "Preemptions, by what became of the blocks.";
    raise("quire:preemptions_total", kPreemptions, swap.preemptions_swapped, {{"mode", "swap"}});
    raise("quire:preemptions_total", kPreemptions, swap.preemptions_recomputed,
          {{"mode", "recompute"}});
    raise("quire:kv_tier_hits_total",
          "Tokens of prefix-cache hits that lay in the swap space and were copied in.",
          swap.tier_hits);
    raise("quire:kv_tier_evictions_total", "Cached blocks that the swap space lost to others.",
          swap.tier_evictions);
  }

  prometheus::Registry registry;
  prometheus::Labels labels;
  prometheus::Gauge *running, *waiting, *kv_usage, *swap_usage, *cpu_usage, *token_budget;
  prometheus::Histogram *ttft, *itl, *tpot, *e2e, *queue_time, *prefill, *decode, *inference,
      *prompt_length, *output_length, *params_n, *params_max_tokens, *iteration;
  std::string finished_names[engine::kNumFinishReasons];
  std::mutex scrape_mutex;
};

Metrics::Metrics(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Metrics::~Metrics() = default;

void Metrics::observe_event(const engine::OutputEvent& event, bool first_of_choice,
                            engine::Clock::duration since_last, engine::Clock::time_point arrival) {
  if (!event.tokens.empty()) {
    if (first_of_choice) {
      if (event.choice == 0) impl_->ttft->Observe(seconds(event.time - arrival));
    } else {
      impl_->itl->Observe(seconds(since_last));
    }
  }
  if (!event.summary) return;
  const engine::RequestSummary& s = *event.summary;
  impl_->e2e->Observe(seconds(s.last_token - s.arrival));
  impl_->queue_time->Observe(seconds(s.first_scheduled - s.arrival));
  impl_->prefill->Observe(seconds(s.first_token - s.first_scheduled));
  impl_->decode->Observe(seconds(s.last_token - s.first_token));
  impl_->inference->Observe(seconds(s.last_token - s.first_scheduled));
  impl_->prompt_length->Observe(static_cast<double>(s.num_prompt_tokens));
  impl_->output_length->Observe(static_cast<double>(s.num_generated_tokens));
  if (s.num_generated_tokens > 1) {
    impl_->tpot->Observe(seconds(s.last_token - s.first_token) /
                         static_cast<double>(s.num_generated_tokens - 1));
  }
}

void Metrics::observe_request(int32_t n, int64_t max_tokens) {
  impl_->params_n->Observe(n);
  impl_->params_max_tokens->Observe(static_cast<double>(max_tokens));
}

void Metrics::observe_step(const engine::StepStats& step) {
  impl_->iteration->Observe(static_cast<double>(step.num_tokens));
}

std::string Metrics::scrape(const engine::EngineStats& stats) {
  const std::lock_guard lock(impl_->scrape_mutex);
  impl_->running->Set(static_cast<double>(stats.num_running));
  impl_->waiting->Set(static_cast<double>(stats.num_waiting));
  impl_->kv_usage->Set(stats.kv_cache_usage);
  impl_->swap_usage->Set(stats.swap_usage);
  impl_->cpu_usage->Set(stats.swap_usage);
  impl_->token_budget->Set(stats.token_budget);
  impl_->raise_swap_counters(stats.swap);
  impl_->raise("vllm:num_preemptions_total", "Sequences taken out of the batch for want of blocks.",
               stats.num_preemptions);
  impl_->raise("vllm:prompt_tokens_total", "Prompt tokens computed.", stats.prompt_tokens);
  impl_->raise("vllm:prompt_tokens_cached_total", "Prompt tokens found in the prefix cache.",
               stats.prompt_tokens_cached);
  impl_->raise("vllm:generation_tokens_total", "Tokens generated.", stats.generation_tokens);
  impl_->raise("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.",
               stats.prefix_cache_queries);
  impl_->raise("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache.",
               stats.prefix_cache_hits);
  for (int i = 1; i < engine::kNumFinishReasons; ++i) {
    impl_->raise("vllm:request_success_total", "Choices that ended, by reason.",
                 stats.finished[static_cast<size_t>(i)],
                 {{"finished_reason", impl_->finished_names[i]}});
  }
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace quire::server
