// foreign_load_bench: what a busy thread of somebody else's on one worker's processor does to step
// times. Decodes with and without it in turns; workers are bound, one a processor.
//
//   quire_foreign_load_bench MODEL [--cpus 0-1] [--foreign 1] [--streams 1] [--decode 256]
//                            [--rounds 5]
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "quire/base/cpu_count.h"
#include "quire/base/error.h"
#include "quire/llm/llm.h"

namespace {

using namespace quire;

struct BenchOptions {
  std::string model;
  std::string cpus = "0-1";
  int foreign = 1;
  int streams = 1;
  int decode = 256;
  int rounds = 5;
};

/// Spins on one processor while it lives.
class ForeignThread {
 public:
  explicit ForeignThread(int cpu)
      : thread_([this, cpu] {
          cpu_set_t set;
          CPU_ZERO(&set);
          CPU_SET(static_cast<size_t>(cpu), &set);
          if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("sched_setaffinity");
          while (!stop_.load(std::memory_order_relaxed)) spins_ = spins_ + 1;
        }) {}
  ~ForeignThread() {
    stop_ = true;
    thread_.join();
  }
  ForeignThread(const ForeignThread&) = delete;
  ForeignThread& operator=(const ForeignThread&) = delete;

 private:
  std::atomic<bool> stop_{false};
  volatile int64_t spins_ = 0;
  std::thread thread_;
};

/// Milliseconds of the steps of one round of decoding.
std::vector<double> decode(llm::LLM& llm, const BenchOptions& options, std::vector<double>& steps) {
  llm::SamplingParams params;
  params.max_tokens = options.decode;
  params.temperature = 0.0f;
  params.ignore_eos = true;
  std::vector<std::vector<int32_t>> prompts;
  for (int i = 0; i < options.streams; ++i) prompts.push_back({100 + i, 200, 300});
  steps.clear();
  llm.generate(prompts, params);
  std::vector<double> decoding(steps.begin() + static_cast<int64_t>(steps.size()) / 8, steps.end());
  return decoding;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(q * static_cast<double>(values.size())))];
}

int run(const BenchOptions& options) {
  llm::Options llm_options;
  llm_options.model = options.model;
  llm_options.max_model_len = options.decode + 64;
  const auto cpus = parse_cpu_list(options.cpus);
  if (!cpus) throw LoadError("--cpus", "", "processors such as 0-1", options.cpus);
  llm_options.cpu_affinity = *cpus;
  std::vector<double> steps;
  steps.reserve(1 << 20);
  llm_options.on_step = [&](const engine::StepStats& stats) {
    steps.push_back(std::chrono::duration<double, std::milli>(stats.duration).count());
  };
  llm::LLM llm(llm_options);
  decode(llm, options, steps);  // warm up
  std::vector<double> alone;
  std::vector<double> disturbed;
  for (int round = 0; round < options.rounds; ++round) {
    for (const double ms : decode(llm, options, steps)) alone.push_back(ms);
    const ForeignThread foreign(options.foreign);
    for (const double ms : decode(llm, options, steps)) disturbed.push_back(ms);
  }
  const auto print = [](const char* name, const std::vector<double>& ms) {
    std::printf("%-12s p50 %8.3f  p90 %8.3f  p99 %8.3f ms a step (%zu steps)\n", name,
                quantile(ms, 0.5), quantile(ms, 0.9), quantile(ms, 0.99), ms.size());
  };
  print("alone", alone);
  print("disturbed", disturbed);
  std::printf("ratio        p50 %8.2f  p99 %8.2f\n",
              quantile(disturbed, 0.5) / quantile(alone, 0.5),
              quantile(disturbed, 0.99) / quantile(alone, 0.99));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  CLI::App app("Step times with a foreign thread on a worker's processor.");
  app.add_option("model", options.model, "a GGUF file or HF folder")->required();
  app.add_option("--cpus", options.cpus, "the workers' processors");
  app.add_option("--foreign", options.foreign, "the foreign thread's processor");
  app.add_option("--streams", options.streams, "batch size");
  app.add_option("--decode", options.decode, "tokens generated a stream and round");
  app.add_option("--rounds", options.rounds, "rounds of each kind");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire_foreign_load_bench: %s\n", error.what());
    return 1;
  }
}
