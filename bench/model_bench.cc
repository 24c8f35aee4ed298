// model_bench: tokens a second of one model: prefill of 512, decode of one stream and of many.
// Prints one JSON object.
//
//   quire_model_bench MODEL [--threads N] [--rounds N] [--streams 1,16] [--prefill 512] [--decode
//   128]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/llm/llm.h"

namespace {

using namespace quire;
namespace json = boost::json;

struct BenchOptions {
  std::string model;
  int threads = 0;
  int rounds = 3;
  int prefill = 512;
  int decode = 128;
  std::vector<int> streams = {1, 16};
  std::string activation_dtype = "auto";
};

// Token ids that are valid in any vocabulary and not all alike.
std::vector<int32_t> prompt_of(int length, int salt) {
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(length));
  for (int i = 0; i < length; ++i) ids.push_back(100 + (i * 7919 + salt * 104729) % 20000);
  return ids;
}

double seconds(engine::Clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

double prefill_rate(llm::LLM& llm, int length, int salt) {
  llm::SamplingParams params;
  params.max_tokens = 1;
  params.temperature = 0.0f;
  const std::vector<std::vector<int32_t>> prompts = {prompt_of(length, salt)};
  const auto results = llm.generate(prompts, params);
  const engine::RequestSummary& s = results[0].summary;
  return length / seconds(s.first_token - s.first_scheduled);
}

// All streams' tokens after the first over the time from the first to the last of them.
double decode_rate(llm::LLM& llm, int streams, int length) {
  llm::SamplingParams params;
  params.max_tokens = length + 1;
  params.temperature = 0.0f;
  params.ignore_eos = true;
  std::vector<std::vector<int32_t>> prompts;
  prompts.reserve(static_cast<size_t>(streams));
  for (int i = 0; i < streams; ++i) prompts.push_back(prompt_of(1, i));
  const auto results = llm.generate(prompts, params);
  auto first = results[0].summary.first_token;
  auto last = first;
  for (const auto& result : results) {
    first = std::min(first, result.summary.first_token);
    last = std::max(last, result.summary.last_token);
  }
  return streams * length / seconds(last - first);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(const BenchOptions& options) {
  llm::Options llm_options;
  llm_options.model = options.model;
  llm_options.threads = options.threads;
  llm_options.activation_dtype = options.activation_dtype;
  llm_options.max_num_batched_tokens = std::max(512, options.prefill);
  llm_options.max_model_len = std::max(options.prefill, options.decode) + 64;
  llm::LLM llm(llm_options);
  prefill_rate(llm, options.prefill, 0);  // warm up: pages touched, threads awake
  json::object out{{"model", options.model}, {"backend", std::string(llm.backend_name())}};
  std::vector<double> rates;
  rates.reserve(static_cast<size_t>(options.rounds));
  for (int i = 0; i < options.rounds; ++i)
    rates.push_back(prefill_rate(llm, options.prefill, i + 1));
  out["prefill_" + std::to_string(options.prefill)] = median(rates);
  for (const int streams : options.streams) {
    rates.clear();
    for (int i = 0; i < options.rounds; ++i)
      rates.push_back(decode_rate(llm, streams, options.decode));
    out["decode_" + std::to_string(streams)] = median(rates);
  }
  std::printf("%s\n", json::serialize(out).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  CLI::App app("Tokens a second of one model.");
  app.add_option("model", options.model, "a GGUF file or HF folder")->required();
  app.add_option("--threads", options.threads, "compute threads; 0: one a physical core");
  app.add_option("--rounds", options.rounds, "repetitions; medians are printed");
  app.add_option("--prefill", options.prefill, "prompt tokens");
  app.add_option("--decode", options.decode, "tokens generated a stream");
  app.add_option("--streams", options.streams, "batch sizes")->delimiter(',');
  app.add_option("--activation-dtype", options.activation_dtype, "auto|fp32|bf16|int8");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire_model_bench: %s\n", error.what());
    return 1;
  }
}
