// `quire profile`: what a model's memory and time go to, measured while it answers.

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/apps/commands.h"
#include "quire/apps/model_options.h"
#include "quire/backend/cpu/ceilings.h"
#include "quire/base/error.h"
#include "quire/llm/profile_json.h"
#include "quire/llm/profile_memory.h"
#include "quire/llm/profile_steps.h"
#include "quire/llm/profile_trace.h"

namespace quire::apps {
namespace {

namespace json = boost::json;

struct ProfileCommand {
  ModelOptions model;
  std::vector<std::string> prompts;
  int32_t random_input_len = 0;
  int32_t max_tokens = 50;
  int32_t warmups = 1;
  bool by_line = false;
  std::string trace;
  int64_t max_traced_steps = 400;
  std::string save_result;
};

constexpr const char* kDefaultPrompt =
    "A roofline has two parts, one that slopes and one that is flat. The first is";

std::vector<std::vector<int32_t>> make_prompts(const ProfileCommand& command, const llm::LLM& llm) {
  if (command.random_input_len > 0) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int32_t> token(
        0, llm.config().vocab_size > 0 ? static_cast<int32_t>(llm.config().vocab_size) - 1 : 0);
    std::vector<int32_t> ids(static_cast<size_t>(command.random_input_len));
    for (int32_t& id : ids) id = token(random);
    return {ids};
  }
  if (!llm.has_tokenizer()) {
    throw LoadError("profile", "the model has no tokenizer: use --random-input-len");
  }
  std::vector<std::vector<int32_t>> prompts;
  prompts.reserve(command.prompts.size() + 1);
  for (const std::string& text : command.prompts)
    prompts.push_back(llm.tokenizer().encode(text, true));
  if (prompts.empty()) prompts.push_back(llm.tokenizer().encode(kDefaultPrompt, true));
  return prompts;
}

/// Runs the prompts together; ends-of-sequence do not end them, so that the steps are as many as
/// asked for.
void generate(llm::LLM& llm, const std::vector<std::vector<int32_t>>& prompts, int32_t max_tokens) {
  llm::SamplingParams params;
  params.temperature = 0.0F;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  for (const llm::RequestOutput& output : llm.generate(prompts, params)) {
    if (output.error) throw LoadError("profile", output.error->message);
  }
}

/// What `quire bench ceilings` kept of this machine; nothing where it has not run.
llm::RooflineCeilings known_ceilings(int threads) {
  const auto known = backend::cpu::load_ceilings(threads);
  if (!known) {
    fmt::print(stderr,
               "No ceilings of this machine are known: `quire bench ceilings` measures them, "
               "and then the tables tell how near each operation comes.\n");
    return {};
  }
  return {.memory_gbs = known->read_gbs,
          .cache_gbs = known->l2_read_gbs,
          .fp32_gflops = known->fp32_gflops,
          .bf16_gflops = known->bf16_gflops,
          .int8_gops = known->int8_gops};
}

struct Measured {
  llm::MemoryProfile load;
  llm::MemoryProfile run;
  int64_t prompt_tokens = 0;
  std::string backend;
};

json::object result_json(const ProfileCommand& command, const Measured& measured,
                         const llm::StepProfiler& profiler) {
  json::object out{{"model", shown_name(command.model.model)},
                   {"backend", measured.backend},
                   {"prompt_tokens", measured.prompt_tokens},
                   {"max_tokens", command.max_tokens},
                   {"memory", json::array{llm::memory_profile_json(measured.load),
                                          llm::memory_profile_json(measured.run)}}};
  const llm::RooflineCeilings& ceilings = profiler.ceilings();
  if (ceilings.memory_gbs > 0) {
    out["ceilings"] = json::object{{"memory_gb_s", ceilings.memory_gbs},
                                   {"cache_gb_s", ceilings.cache_gbs},
                                   {"fp32_gflop_s", ceilings.fp32_gflops},
                                   {"bf16_gflop_s", ceilings.bf16_gflops},
                                   {"int8_gop_s", ceilings.int8_gops}};
  }
  for (const auto step_class : {llm::StepClass::kPrefill, llm::StepClass::kDecode}) {
    out[llm::step_class_name(step_class)] = llm::step_profile_json(profiler, step_class);
  }
  return out;
}

void write_trace(const std::string& path, const llm::StepTrace& trace) {
  std::ofstream file(path, std::ios::binary);
  trace.write(file);
  file.close();
  if (!file) throw LoadError(path, "cannot be written");
  fmt::print(stderr, "{} steps in {}: open it with ui.perfetto.dev or chrome://tracing\n",
             trace.num_steps(), path);
  if (trace.num_left_out() > 0) {
    fmt::print(stderr, "{} later steps are left out: see --max-traced-steps\n",
               trace.num_left_out());
  }
}

int profile(ProfileCommand& command) {
  if (command.max_tokens < 1 || command.random_input_len < 0 || command.warmups < 0) {
    throw LoadError("profile", "--max-tokens must be 1 or more, other numbers 0 or more");
  }
  const std::string path = resolve_model(command.model.model, command.model.quiet);
  const auto ledger = std::make_shared<MemoryLedger>();
  llm::StepProfiler profiler(known_ceilings(command.model.llm.threads));
  llm::StepTrace trace(command.max_traced_steps);
  std::atomic<bool> recording{false};
  command.model.llm.ledger = ledger;
  command.model.llm.on_step_record = [&](const llm::StepRecord& record) {
    if (!recording) return;
    profiler.observe(record);
    if (!command.trace.empty()) trace.observe(record);
  };
  std::unique_ptr<llm::LLM> llm;
  const auto measure = [&](const char* name, const std::function<void()>& work) {
    return llm::profile_memory(work, {.name = name, .ledger = ledger.get(), .out = nullptr});
  };
  Measured measured;
  measured.load = measure("loading", [&] { llm = open_model(command.model, path); });
  const std::vector<std::vector<int32_t>> prompts = make_prompts(command, *llm);
  for (const auto& prompt : prompts) measured.prompt_tokens += static_cast<int64_t>(prompt.size());
  measured.run = measure("generating", [&] {
    for (int32_t i = 0; i < command.warmups; ++i) generate(*llm, prompts, command.max_tokens);
    recording = true;
    generate(*llm, prompts, command.max_tokens);
    recording = false;
  });
  measured.backend = std::string(llm->backend_name());
  const bool json_only = command.save_result == "-";
  if (!json_only) {
    fmt::print("{}\n{}\n{}\n", llm::format_process(measured.load),
               llm::format_process(measured.run), llm::format_tags(measured.run.after.ledger));
    for (const auto step_class : {llm::StepClass::kPrefill, llm::StepClass::kDecode}) {
      fmt::print("{}\n", llm::format_profile(profiler, step_class, command.by_line));
    }
  }
  if (!command.trace.empty()) write_trace(command.trace, trace);
  if (!command.save_result.empty()) {
    write_file(command.save_result,
               json::serialize(result_json(command, measured, profiler)) + "\n");
  }
  return 0;
}

}  // namespace

Action add_profile(CLI::App& command) {
  auto options = std::make_shared<ProfileCommand>();
  // Or the prompt would be computed in the warm-up alone.
  options->model.llm.enable_prefix_caching = false;
  command.add_option("model_tag", options->model.model, "the model: see --model");
  command.add_option("--prompt,-p", options->prompts, "what to complete; several run together");
  command.add_option("--random-input-len", options->random_input_len,
                     "instead of --prompt: so many random tokens");
  command.add_option("--max-tokens", options->max_tokens, "tokens to generate for each prompt")
      ->capture_default_str();
  command.add_option("--warmups", options->warmups, "runs before the one that is timed")
      ->capture_default_str();
  command.add_flag("--lines", options->by_line,
                   "every operation of the program by itself, instead of their kinds");
  command.add_option("--trace", options->trace,
                     "write the timed steps as a trace for ui.perfetto.dev");
  command.add_option("--max-traced-steps", options->max_traced_steps, "steps in the trace at most")
      ->capture_default_str();
  command.add_option("--save-result", options->save_result,
                     "write everything as JSON; - is stdout, and then nothing else is");
  add_model_options(command, options->model);
  command.footer(
      "Reading the clock around every operation takes some time itself: compare shares here, and "
      "measure\nspeed with `quire bench`.");
  return [options] { return profile(*options); };
}

}  // namespace quire::apps
