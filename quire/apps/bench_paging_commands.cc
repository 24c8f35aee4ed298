// `quire bench batching`, `kv` and `trace`: what paging and batching are worth, and how they look.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/apps/model_options.h"
#include "quire/base/error.h"
#include "quire/bench/batching.h"
#include "quire/bench/kv_waste.h"
#include "quire/bench/trace/timeline.h"

namespace quire::apps {
namespace {

namespace json = boost::json;

struct BatchingCommand {
  ModelOptions model;
  bench::BatchingOptions bench;
  std::string save_result;
};

int bench_batching(BatchingCommand& options) {
  const bench::BatchingOptions& bench = options.bench;
  if (bench.num_requests < 1 || bench.batch < 1 || bench.rounds < 1 || bench.input_len < 1 ||
      bench.min_output_len < 1 || bench.max_output_len < bench.min_output_len) {
    throw LoadError("bench batching", "numbers and lengths must be 1 or more, and in order");
  }
  options.model.llm.max_num_seqs = bench.batch;
  options.model.llm.max_waiting_requests = bench.num_requests;
  if (options.model.max_model_len.empty()) {
    options.model.max_model_len = std::to_string(bench.input_len + bench.max_output_len);
  }
  const auto llm =
      open_model(options.model, resolve_model(options.model.model, options.model.quiet));
  if (!options.model.quiet) {
    options.bench.on_round = [](int32_t round, bench::BatchingMode mode, double speed) {
      fmt::print(stderr, "round {}, {}: {:.1f} output tokens/s\n", round,
                 mode == bench::BatchingMode::kStatic ? "static" : "continuous", speed);
    };
  }
  const bench::BatchingResult result = bench::measure_batching(*llm, bench);
  fmt::print("{}", bench::format_batching(bench, result));
  if (!options.save_result.empty()) {
    json::object out = bench::batching_json(bench, result);
    out["model"] = shown_name(options.model.model);
    write_file(options.save_result, json::serialize(out) + "\n");
  }
  return 0;
}

struct KvCommand {
  bench::KvWasteOptions bench;
  std::vector<int32_t> block_sizes = {16, 32, 128};
  std::string lengths;
  std::string save_result;
};

json::object waste_json(const bench::KvWaste& waste) {
  return {{"block_size", waste.block_tokens},     {"waste", waste.share()},
          {"mean_running", waste.mean_running},   {"steps", waste.num_steps},
          {"preemptions", waste.num_preemptions}, {"requests", waste.num_requests}};
}

void print_waste(const std::string& name, const bench::KvWaste& waste) {
  fmt::print("{:<26}{:>9.2f} %{:>16.1f}{:>10}{:>13}\n", name, waste.share() * 100,
             waste.mean_running, waste.num_steps, waste.num_preemptions);
}

int bench_kv(KvCommand& options) {
  bench::KvWasteOptions& bench = options.bench;
  if (bench.max_model_len < 2 || bench.pool_tokens < bench.max_model_len) {
    throw LoadError("--pool-tokens", "must hold a sequence of --max-model-len, which is 2 or more");
  }
  const auto lengths =
      options.lengths.empty()
          ? bench::parse_lengths(bench::sharegpt_like_lengths(), "sharegpt_like_lengths.jsonl")
          : bench::read_lengths(options.lengths);
  fmt::print(
      "{} requests from {}; {} KV slots, sequences of at most {} tokens\n\n"
      "{:<26}{:>11}{:>16}{:>10}{:>13}\n",
      lengths.size(),
      options.lengths.empty() ? "the ShareGPT-like lengths (drawn, not recorded)" : options.lengths,
      bench.pool_tokens, bench.max_model_len, "", "waste", "mean running", "steps", "preemptions");
  json::array paged;
  for (const int32_t block_tokens : options.block_sizes) {
    if (block_tokens < 1 || block_tokens > bench.pool_tokens) {
      throw LoadError("--block-size", "must be 1 or more, and fit the pool");
    }
    bench.block_tokens = block_tokens;
    const bench::KvWaste waste = bench::simulate_kv_waste(lengths, bench);
    print_waste(fmt::format("blocks of {} tokens", block_tokens), waste);
    paged.push_back(waste_json(waste));
  }
  const bench::KvWaste contiguous = bench::simulate_contiguous(lengths, bench);
  print_waste("contiguous, longest length", contiguous);
  if (!options.save_result.empty()) {
    const json::object out{{"lengths", options.lengths.empty() ? "sharegpt-like" : options.lengths},
                           {"pool_tokens", bench.pool_tokens},
                           {"max_model_len", bench.max_model_len},
                           {"paged", std::move(paged)},
                           {"contiguous", waste_json(contiguous)}};
    write_file(options.save_result, json::serialize(out) + "\n");
  }
  return 0;
}

struct TraceCommand {
  std::string file;
  std::string svg;
  std::vector<std::string> submits;
  std::string options;
  bool quiet = false;
};

bench::TraceScript read_script(const TraceCommand& command) {
  if (command.file.empty()) {
    if (command.submits.empty() && command.options.empty()) {
      return bench::parse_trace(bench::textbook_trace(), "textbook");
    }
    std::string text = "options " + command.options + "\n";
    for (const std::string& submit : command.submits) text += "submit " + submit + "\n";
    return bench::parse_trace(text, "--submit");
  }
  std::ostringstream text;
  if (command.file == "-") {
    text << std::cin.rdbuf();
  } else {
    std::ifstream file(command.file);
    if (!file) throw LoadError(command.file, "cannot be read");
    text << file.rdbuf();
  }
  return bench::parse_trace(text.str(), command.file);
}

int bench_trace(const TraceCommand& command) {
  const bench::Timeline timeline = bench::record_timeline(read_script(command));
  if (!command.quiet) fmt::print("{}", bench::timeline_text(timeline));
  if (!command.svg.empty()) write_file(command.svg, bench::timeline_svg(timeline));
  return 0;
}

}  // namespace

Action add_bench_batching(CLI::App& command) {
  auto options = std::make_shared<BatchingCommand>();
  bench::BatchingOptions& bench = options->bench;
  command.add_option("--num-prompts", bench.num_requests, "requests in a round")
      ->capture_default_str();
  command.add_option("--batch", bench.batch, "size of a static batch, and --max-num-seqs")
      ->capture_default_str();
  command.add_option("--random-input-len", bench.input_len, "prompt tokens")->capture_default_str();
  command.add_option("--min-output-len", bench.min_output_len, "output tokens at least")
      ->capture_default_str();
  command.add_option("--max-output-len", bench.max_output_len, "output tokens at most")
      ->capture_default_str();
  command.add_option("--rounds", bench.rounds, "times both modes run, in turns")
      ->capture_default_str();
  command.add_option("--draw-seed", bench.seed, "of the drawn lengths and prompts")
      ->capture_default_str();
  command.add_option("--save-result", options->save_result,
                     "write the figures as JSON; - is stdout");
  add_model_options(command, options->model);
  return [options] { return bench_batching(*options); };
}

Action add_bench_kv(CLI::App& command) {
  auto options = std::make_shared<KvCommand>();
  command.add_option("--block-size", options->block_sizes, "tokens a block holds; several")
      ->capture_default_str();
  command.add_option("--pool-tokens", options->bench.pool_tokens, "KV slots in all")
      ->capture_default_str();
  command
      .add_option("--max-model-len", options->bench.max_model_len,
                  "longest sequence, and what a contiguous engine reserves for each")
      ->capture_default_str();
  command.add_option("--max-num-seqs", options->bench.max_num_seqs, "sequences in a step at most")
      ->capture_default_str();
  command
      .add_option("--max-num-batched-tokens", options->bench.max_num_batched_tokens,
                  "tokens in a step at most")
      ->capture_default_str();
  command.add_option("--lengths,--dataset-path", options->lengths,
                     "a file of lines {\"input_len\": 161, \"output_len\": 338}; the built-in "
                     "ShareGPT-like one when not given");
  command.add_option("--save-result", options->save_result,
                     "write the figures as JSON; - is stdout");
  return [options] { return bench_kv(*options); };
}

Action add_bench_trace(CLI::App& command) {
  auto options = std::make_shared<TraceCommand>();
  command.add_option("file", options->file,
                     "a trace; - is standard input; without one, the textbook's picture");
  command.add_option(
      "--submit", options->submits,
      "instead of a file: a request as a trace has it (\"a 5 max 12 n 2\"); several");
  command.add_option("--options", options->options,
                     "with --submit: as a trace has them (\"seqs 3 blocks 16 block_tokens 4\")");
  command.add_option("--svg", options->svg, "also draw it; - is stdout");
  command.add_flag("--quiet", options->quiet, "no text");
  command.footer(
      "A trace, one statement a line:\n"
      "  options seqs 3 blocks 16 block_tokens 4 budget 2048 context 4096\n"
      "  submit a 5 max 12      5 prompt tokens, 12 new; also n 2, priority 1, shares 4 (first\n"
      "                         tokens that all requests share which say so)\n"
      "  step 2 | run | cancel a");
  return [options] { return bench_trace(*options); };
}

}  // namespace quire::apps
