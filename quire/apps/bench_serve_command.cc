// `quire bench serve`: the load generator.

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/base/error.h"
#include "quire/bench/load/load_generator.h"
#include "quire/bench/load/request_body.h"
#include "quire/bench/load/serve_report.h"
#include "quire/bench/workload.h"

namespace quire::apps {
namespace {

namespace json = boost::json;

struct ServeBenchOptions {
  std::string base_url = "http://localhost:8000";
  std::string endpoint = "completions";
  std::string api_key;
  std::string request_rate = "inf";
  std::string lengths;  // a JSONL file
  int32_t random_input_len = 0;
  int32_t random_output_len = 0;
  double random_range_ratio = 0;
  std::string save_result;
  bool quiet = false;
  bench::WorkloadOptions workload;
  bench::BodyOptions body;
  bench::LoadOptions load;
};

void check(const ServeBenchOptions& options) {
  const auto need = [](bool fine, const char* option, const char* expected) {
    if (!fine) throw LoadError(option, expected);
  };
  need(options.workload.num_prompts > 0, "--num-prompts", "at least 1 is needed");
  need(options.workload.prefix_len >= 0, "--prefix-len", "0 or more is needed");
  need(options.workload.prefix_groups > 0, "--prefix-groups", "at least 1 is needed");
  need(options.workload.first_token_id >= 0 &&
           options.workload.vocab_size > options.workload.first_token_id,
       "--vocab-size", "must exceed --first-token-id, and both be 0 or more");
  need(options.load.max_concurrency >= 0, "--max-concurrency", "0 or more is needed");
  need(options.load.idle_timeout_s > 0, "--idle-timeout", "more than 0 is needed");
  need(options.random_range_ratio >= 0 && options.random_range_ratio <= 1, "--random-range-ratio",
       "0 to 1 is needed");
  need((options.random_input_len > 0) == (options.random_output_len > 0), "--random-input-len",
       "--random-input-len and --random-output-len go together");
  need(options.random_input_len == 0 || options.lengths.empty(), "--lengths",
       "either a file or --random-input-len");
}

/// Requests a second; 0: all at once.
double parse_rate(const std::string& text) {
  if (text == "inf") return 0;
  size_t used = 0;
  double rate = 0;
  try {
    rate = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || !(rate > 0) || rate > 1e6) {
    throw LoadError("--request-rate", "", "requests a second, or inf", text);
  }
  return rate;
}

std::vector<bench::LengthPair> choose_lengths(const ServeBenchOptions& options) {
  if (options.random_input_len > 0) {
    return bench::draw_lengths({options.random_input_len, options.random_output_len},
                               options.random_range_ratio, options.workload.num_prompts,
                               options.workload.seed);
  }
  if (!options.lengths.empty()) return bench::read_lengths(options.lengths);
  return bench::parse_lengths(bench::sharegpt_like_lengths(), "sharegpt_like_lengths.jsonl");
}

std::string first_model(const bench::Target& target) {
  const std::string body = bench::fetch(target, "/v1/models");
  try {
    return std::string(json::parse(body).at("data").at(0).at("id").as_string());
  } catch (const std::exception&) {
    throw LoadError("/v1/models", "names no model: give --model");
  }
}

void show_progress(int64_t num_requests, int64_t done, int64_t running, int64_t failed,
                   double elapsed_s) {
  fmt::print(stderr, "\r{}/{} done, {} running, {} failed, {:.0f} s \x1b[K", done, num_requests,
             running, failed, elapsed_s);
  if (done == num_requests) fmt::print(stderr, "\n");
  std::fflush(stderr);
}

json::object settings_json(const ServeBenchOptions& options) {
  return {{"base_url", options.base_url},
          {"endpoint", options.load.endpoint},
          {"model_id", options.body.model},
          {"num_prompts", options.workload.num_prompts},
          {"request_rate", options.request_rate},
          {"max_concurrency", options.load.max_concurrency},
          {"prefix_len", options.workload.prefix_len},
          {"prefix_groups", options.workload.prefix_groups},
          {"random_input_len", options.random_input_len},
          {"random_output_len", options.random_output_len},
          {"lengths", options.lengths},
          {"ignore_eos", options.body.ignore_eos},
          {"seed", options.workload.seed}};
}

int bench_serve(ServeBenchOptions& options) {
  check(options);
  bench::Target target = bench::parse_target(options.base_url);
  target.api_key = options.api_key;
  options.workload.request_rate = parse_rate(options.request_rate);
  options.body.chat = options.endpoint == "chat";
  options.load.endpoint = options.body.chat ? "/v1/chat/completions" : "/v1/completions";
  if (options.body.model.empty()) options.body.model = first_model(target);
  std::vector<bench::LoadRequest> requests;
  for (const auto& drawn : bench::make_workload(choose_lengths(options), options.workload)) {
    requests.push_back({bench::request_body(drawn, options.body), drawn.arrival_s});
  }
  if (!options.quiet && isatty(STDERR_FILENO) != 0) {
    options.load.on_progress = [&](int64_t done, int64_t running, int64_t failed, double elapsed) {
      show_progress(options.workload.num_prompts, done, running, failed, elapsed);
    };
  }
  const auto records = bench::run_load(target, requests, options.load);
  const bench::ServeReport report = bench::make_report(records);
  fmt::print("{}", bench::format_report(report));
  if (!options.save_result.empty()) {
    json::object result = settings_json(options);
    for (const auto& entry : bench::report_json(report)) result[entry.key()] = entry.value();
    write_file(options.save_result, json::serialize(result) + "\n");
  }
  return report.num_failed == 0 ? 0 : 1;
}

void add_workload_options(CLI::App& command, ServeBenchOptions& options) {
  bench::WorkloadOptions& workload = options.workload;
  command.add_option("--num-prompts", workload.num_prompts, "requests in all")
      ->capture_default_str();
  command
      .add_option("--request-rate", options.request_rate,
                  "requests a second, at the times of a Poisson process (open loop); inf: all at "
                  "once")
      ->capture_default_str();
  command
      .add_option("--max-concurrency", options.load.max_concurrency,
                  "requests in flight at most (closed loop, when the rate is inf); 0: no limit")
      ->capture_default_str();
  command.add_option("--lengths,--dataset-path", options.lengths,
                     "a file of lines {\"input_len\": 161, \"output_len\": 338}; the built-in "
                     "ShareGPT-like one when not given");
  command.add_option("--random-input-len", options.random_input_len,
                     "prompt tokens, instead of a file");
  command.add_option("--random-output-len", options.random_output_len,
                     "output tokens, instead of a file");
  command.add_option("--random-range-ratio", options.random_range_ratio,
                     "lengths from (1 - R) to (1 + R) times these");
  command
      .add_option("--prefix-len,--random-prefix-len", workload.prefix_len,
                  "tokens in front of each prompt that its group shares")
      ->capture_default_str();
  command
      .add_option("--prefix-groups", workload.prefix_groups, "groups with a prefix of their own")
      ->capture_default_str();
  command.add_option("--seed", workload.seed, "of lengths, tokens and times")
      ->capture_default_str();
  command.add_option("--vocab-size", workload.vocab_size, "prompt tokens are drawn below this id")
      ->capture_default_str();
  command
      .add_option("--first-token-id", workload.first_token_id,
                  "prompt tokens are drawn from this id on")
      ->capture_default_str();
}

}  // namespace

Action add_bench_serve(CLI::App& command) {
  auto options = std::make_shared<ServeBenchOptions>();
  command.add_option("--base-url", options->base_url, "the server; http or https")
      ->capture_default_str();
  command.add_option("--endpoint", options->endpoint, "what to ask for")
      ->check(CLI::IsMember({"completions", "chat"}))
      ->capture_default_str();
  command.add_option("--model", options->body.model, "the first one the server names if not given");
  command.add_option("--api-key", options->api_key, "sent as a bearer token")
      ->envname("OPENAI_API_KEY");
  add_workload_options(command, *options);
  command.add_flag("--ignore-eos", options->body.ignore_eos,
                   "no answer ends before its drawn length, where the server knows the field");
  command.add_option("--temperature", options->body.temperature, "of all requests")
      ->capture_default_str();
  command.add_flag("--text-prompts", options->body.text,
                   "completion prompts as words instead of token ids, for servers that take no "
                   "ids; chats always are");
  command
      .add_option("--idle-timeout", options->load.idle_timeout_s,
                  "seconds without a byte after which a stream has failed")
      ->capture_default_str();
  command.add_option("--save-result", options->save_result,
                     "write the figures as JSON; - is stdout");
  command.add_flag("--quiet", options->quiet, "no progress line");
  return [options] { return bench_serve(*options); };
}

}  // namespace quire::apps
