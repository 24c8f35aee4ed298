#include "quire/bench/batching.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/bench/random.h"
#include "quire/bench/statistics.h"

namespace quire::bench {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

using Prompts = std::vector<std::vector<int32_t>>;

Prompts draw_prompts(const llm::LLM& llm, const BatchingOptions& options, uint64_t stream) {
  Random random(options.seed * 1000003u + stream + 1);
  const auto vocab = static_cast<int32_t>(std::min<int64_t>(llm.config().vocab_size, 1 << 20));
  Prompts prompts(static_cast<size_t>(options.num_requests));
  for (auto& prompt : prompts) {
    for (int32_t i = 0; i < options.input_len; ++i) prompt.push_back(random.integer(0, vocab - 1));
  }
  return prompts;
}

engine::OutputStream submit(llm::LLM& llm, std::vector<int32_t> prompt, int32_t output_len) {
  engine::EngineRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = output_len;
  request.sampling.ignore_eos = true;
  auto stream = llm.engine().submit(std::move(request));
  if (!stream.ok()) throw LoadError("bench batching", stream.error().message);
  return std::move(stream).value();
}

/// Returns the tokens that came.
int64_t wait_all(std::span<engine::OutputStream> streams) {
  int64_t num_tokens = 0;
  std::vector<engine::OutputEvent> events;
  for (engine::OutputStream& stream : streams) {
    while (stream.wait(events)) {
      for (const engine::OutputEvent& event : events) {
        num_tokens += static_cast<int64_t>(event.tokens.size());
        if (event.error) throw LoadError("bench batching", event.error->message);
      }
    }
  }
  return num_tokens;
}

/// Output tokens a second of one round.
double run_mode(llm::LLM& llm, BatchingMode mode, const BatchingOptions& options, Prompts prompts,
                std::span<const int32_t> output_lens) {
  const size_t group =
      mode == BatchingMode::kStatic ? static_cast<size_t>(options.batch) : prompts.size();
  const auto start = Clock::now();
  int64_t num_tokens = 0;
  for (size_t first = 0; first < prompts.size(); first += group) {
    std::vector<engine::OutputStream> streams;
    for (size_t i = first; i < std::min(first + group, prompts.size()); ++i) {
      streams.push_back(submit(llm, std::move(prompts[i]), output_lens[i]));
    }
    num_tokens += wait_all(streams);
  }
  return static_cast<double>(num_tokens) /
         std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double BatchingResult::ratio() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < static_tokens_per_s.size(); ++i) {
    ratios.push_back(continuous_tokens_per_s[i] / static_tokens_per_s[i]);
  }
  return median(std::move(ratios));
}

std::vector<int32_t> draw_output_lengths(const BatchingOptions& options) {
  Random random(options.seed);
  std::vector<int32_t> lengths;
  lengths.reserve(static_cast<size_t>(options.num_requests));
  for (int32_t i = 0; i < options.num_requests; ++i) {
    lengths.push_back(random.log_uniform(options.min_output_len, options.max_output_len));
  }
  return lengths;
}

BatchingResult measure_batching(llm::LLM& llm, const BatchingOptions& options) {
  const std::vector<int32_t> output_lens = draw_output_lengths(options);
  BatchingResult result;
  for (const int32_t length : output_lens) result.output_tokens += length;
  uint64_t stream = 0;
  const auto run = [&](BatchingMode mode, std::vector<double>& speeds, int64_t& steps) {
    const int64_t steps_before = llm.engine().stats().num_steps;
    speeds.push_back(
        run_mode(llm, mode, options, draw_prompts(llm, options, stream++), output_lens));
    steps = llm.engine().stats().num_steps - steps_before;
    if (options.on_round) {
      options.on_round(static_cast<int32_t>(speeds.size()), mode, speeds.back());
    }
  };
  // Alternating which goes first, so that a machine that grows slower favours neither.
  for (int32_t round = 0; round < options.rounds; ++round) {
    const auto one = [&](BatchingMode mode) {
      if (mode == BatchingMode::kStatic) {
        run(mode, result.static_tokens_per_s, result.static_steps);
      } else {
        run(mode, result.continuous_tokens_per_s, result.continuous_steps);
      }
    };
    one(round % 2 == 0 ? BatchingMode::kStatic : BatchingMode::kContinuous);
    one(round % 2 == 0 ? BatchingMode::kContinuous : BatchingMode::kStatic);
  }
  return result;
}

std::string format_batching(const BatchingOptions& options, const BatchingResult& result) {
  return fmt::format(
      "{} requests of {} prompt tokens and {} to {} output tokens (log-uniform; {} in all), batch "
      "{}\n\n"
      "{:<14}{:>18}{:>10}\n"
      "{:<14}{:>18.1f}{:>10}\n"
      "{:<14}{:>18.1f}{:>10}\n\n"
      "continuous / static: {:.2f} (median of {} rounds)\n",
      options.num_requests, options.input_len, options.min_output_len, options.max_output_len,
      result.output_tokens, options.batch, "", "output tokens/s", "steps", "static",
      median(result.static_tokens_per_s), result.static_steps, "continuous",
      median(result.continuous_tokens_per_s), result.continuous_steps, result.ratio(),
      result.static_tokens_per_s.size());
}

json::object batching_json(const BatchingOptions& options, const BatchingResult& result) {
  const auto list = [](const std::vector<double>& values) {
    return json::array(values.begin(), values.end());
  };
  return {{"num_requests", options.num_requests},
          {"batch", options.batch},
          {"input_len", options.input_len},
          {"min_output_len", options.min_output_len},
          {"max_output_len", options.max_output_len},
          {"seed", options.seed},
          {"output_tokens", result.output_tokens},
          {"static_output_throughput", median(result.static_tokens_per_s)},
          {"continuous_output_throughput", median(result.continuous_tokens_per_s)},
          {"ratio", result.ratio()},
          {"static_steps", result.static_steps},
          {"continuous_steps", result.continuous_steps},
          {"static_rounds", list(result.static_tokens_per_s)},
          {"continuous_rounds", list(result.continuous_tokens_per_s)}};
}

}  // namespace quire::bench
