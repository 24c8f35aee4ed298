// `quire plan`: what a model takes and how fast it can be, before anything is loaded.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json.hpp>

#include "quire/apps/bench_commands.h"
#include "quire/apps/commands.h"
#include "quire/apps/model_options.h"
#include "quire/apps/read_text.h"
#include "quire/base/error.h"
#include "quire/llm/available_memory.h"
#include "quire/llm/kv_sizing.h"
#include "quire/llm/profile_verify.h"
#include "quire/plan/known_models.h"
#include "quire/plan/model_table.h"
#include "quire/plan/pictures.h"
#include "quire/plan/report.h"
#include "quire/plan/this_device.h"
#include "quire/plan/units.h"

namespace quire::apps {
namespace {

struct PlanCommand {
  ModelOptions model;
  std::string device = "this";
  std::string device_file;
  std::string memory;
  int32_t users = 0;
  int64_t prompt_len = 0;
  int64_t output_len = 0;
  std::string lengths;
  std::string write_config;
  std::string html;
  std::string svg;
  bool enforce_eager = false;
  bool json = false;
  bool table = false;
  bool verify = false;
};

/// A file, folder or config.json; else a public model's shape; else the catalogue's.
plan::PlannedModel open_model(const ModelOptions& options) {
  std::error_code error;
  const bool path = !options.model.empty() && std::filesystem::exists(options.model, error);
  if (!path && !options.model.empty()) {
    if (auto known = plan::find_known_model(options.model)) return std::move(*known);
    if (options.model.ends_with(".json") || options.model.ends_with(".gguf")) {
      return plan::open_planned_model(options.model);  // says that it is not there
    }
  }
  try {
    return plan::open_planned_model(resolve_model(options.model, options.quiet));
  } catch (const LoadError& unknown) {
    if (path || options.model.empty()) throw;
    throw LoadError("model", fmt::format("{}; nor a public model's name ({})", unknown.what(),
                                         fmt::join(plan::known_model_names(), ", ")));
  }
}

plan::Device chosen_device(const PlanCommand& command) {
  if (!command.device_file.empty()) {
    const auto devices = plan::parse_devices(read_text(command.device_file), command.device_file);
    return command.device == "this" ? devices.front() : plan::find_device(devices, command.device);
  }
  if (command.device != "this") {
    return plan::find_device(plan::built_in_devices(), command.device);
  }
  plan::Device device = plan::this_device(command.model.llm.threads);
  device.memory_bytes = llm::available_memory();
  return device;
}

/// The engine's own rule for its KV pool. Where memory was named, or is a GPU's, all that is left
/// of the share goes to the pool, as the written configuration then says.
plan::PoolSize engine_pool(const llm::Options& options, bool whole, bool cpu,
                           const plan::PoolDemand& demand) {
  llm::Options asked = options;
  asked.max_model_len = demand.may_shorten ? llm::Options::kLongestThatFits : demand.length;
  if (whole && !asked.kv_cache_memory_bytes && !asked.num_gpu_blocks_override) {
    const auto share = static_cast<int64_t>(options.gpu_memory_utilization *
                                            static_cast<double>(demand.memory_bytes));
    if (share < demand.fixed_bytes + demand.block_bytes) {
      throw LoadError("memory", "",
                      fmt::format("{} beside the KV cache",
                                  plan::bytes_text(static_cast<double>(demand.fixed_bytes))),
                      fmt::format("{} ({} of {})", plan::bytes_text(static_cast<double>(share)),
                                  options.gpu_memory_utilization,
                                  plan::bytes_text(static_cast<double>(demand.memory_bytes))));
    }
    asked.kv_cache_memory_bytes = share - demand.fixed_bytes;
    // Main memory has other uses than blocks that no sequence can reach.
    const int64_t each = (demand.length + demand.block_tokens - 1) / demand.block_tokens;
    const int64_t most = each * options.max_num_seqs * demand.block_bytes;
    if (cpu) asked.kv_cache_memory_bytes = std::min(*asked.kv_cache_memory_bytes, most);
  }
  const llm::KvSize size = llm::size_kv(asked, {.block_bytes = demand.block_bytes,
                                                .block_tokens = demand.block_tokens,
                                                .model_max_len = demand.length,
                                                .fixed_bytes = demand.fixed_bytes,
                                                .available_bytes = demand.memory_bytes});
  return {.num_blocks = size.num_blocks, .max_model_len = size.max_model_len};
}

plan::PlanOptions plan_options(const PlanCommand& command, const llm::Options& llm) {
  plan::PlanOptions options;
  options.device = chosen_device(command);
  const bool named = !command.memory.empty();
  options.memory_bytes =
      named ? plan::parse_bytes(command.memory, "--memory") : options.device.memory_bytes;
  options.utilization = llm.gpu_memory_utilization;
  options.max_num_seqs = llm.max_num_seqs;
  options.max_model_len = llm.max_model_len;
  options.enforce_eager = command.enforce_eager;
  options.record.dtype = llm.dtype;
  options.record.activation_dtype = llm.activation_dtype;
  options.record.kv_cache_dtype = llm.kv_cache_dtype;
  options.record.block_tokens = llm.block_size;
  options.record.max_tokens = llm.max_num_batched_tokens;
  options.record.max_logits = std::max<int64_t>(64, llm.max_num_seqs);
  options.record.tensor_parallel = command.model.tensor_parallel_size;
  options.record.pipeline_parallel = command.model.pipeline_parallel_size;
  if (!command.model.quantization.empty() && command.model.quantization != "gguf") {
    options.record.format = &plan::find_weight_format(command.model.quantization);
  }
  const bool whole = named || options.device.kind == plan::Device::Kind::kGpu ||
                     command.device != "this" || !command.device_file.empty();
  const bool cpu = options.device.kind == plan::Device::Kind::kCpu;
  options.size_pool = [llm, whole, cpu](const plan::PoolDemand& demand) {
    return engine_pool(llm, whole, cpu, demand);
  };
  return options;
}

std::vector<plan::RequestLength> request_lengths(const PlanCommand& command,
                                                 const plan::Report& report) {
  if (!command.lengths.empty()) {
    return plan::parse_request_lengths(read_text(command.lengths), command.lengths);
  }
  return {{.prompt_len = static_cast<int32_t>(report.prompt_len),
           .output_len = static_cast<int32_t>(report.output_len)}};
}

/// The lengths the questions are about: those given, the mean of a file's, or a chat's.
void set_lengths(const PlanCommand& command, const plan::Plan& plan, plan::Report& report) {
  report.prompt_len = command.prompt_len > 0 ? command.prompt_len : 512;
  report.output_len = command.output_len > 0 ? command.output_len : 128;
  if (!command.lengths.empty()) {
    const auto lengths = request_lengths(command, report);
    int64_t prompts = 0;
    int64_t outputs = 0;
    for (const auto& each : lengths) {
      prompts += each.prompt_len;
      outputs += each.output_len;
    }
    report.prompt_len = std::max<int64_t>(1, prompts / static_cast<int64_t>(lengths.size()));
    report.output_len = std::max<int64_t>(1, outputs / static_cast<int64_t>(lengths.size()));
  }
  const int64_t longest = plan.max_model_len;
  const bool asked = command.prompt_len > 0 || command.output_len > 0;
  if (report.prompt_len + report.output_len > longest) {
    if (asked) {
      throw LoadError("--prompt-len, --output-len", "",
                      fmt::format("at most {} tokens together", longest),
                      fmt::format("{}", report.prompt_len + report.output_len));
    }
    report.output_len = std::max<int64_t>(1, longest / 4);
    report.prompt_len = std::max<int64_t>(1, longest - report.output_len);
  }
}

plan::Report make_report(const PlanCommand& command, const plan::Plan& plan) {
  plan::Report report;
  report.plan = &plan;
  report.model = command.model.model.empty() ? shown_name("") : command.model.model;
  report.users = command.users;
  set_lengths(command, plan, report);
  if (plan.options.device.has_ceilings()) {
    report.forecast = plan::forecast(plan, report.prompt_len, report.output_len);
  }
  const int64_t each = report.prompt_len + report.output_len;
  const plan::Wish wish{.context = command.users > 0 ? each : 0,
                        .sequences = std::max(1, command.users),
                        .tokens_each = command.users > 0 ? each : 0};
  if (!plan::satisfies(plan, wish)) report.alternatives = plan::find_alternatives(plan, wish);
  if (!plan.fits) return report;
  if (command.users > 0) {
    report.traffic = plan::play_traffic(plan, {.users = command.users,
                                               .lengths = request_lengths(command, report),
                                               .seed = command.model.seed,
                                               .num_requests = 0});
  }
  report.config = plan::tune(plan, report.model, report.forecast, each);
  return report;
}

void write_pictures(const std::string& folder, const plan::Report& report) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto file = [&folder](const char* name) { return folder + "/" + name + ".svg"; };
  write_file(file("ledger"), plan::ledger_svg(report));
  write_file(file("memory"), plan::memory_svg(report));
  if (!report.forecast) return;
  write_file(file("roofline"), plan::roofline_svg(report));
  write_file(file("throughput"), plan::throughput_svg(report));
}

/// The plan's figures by the tags of the engine's ledger.
llm::Prediction prediction_of(const plan::Plan& plan) {
  const plan::RankLedger& rank = plan.fullest();
  llm::Prediction prediction;
  prediction.tokenizer_is_estimate = true;
  llm::MemoryReport& report = prediction.plan;
  report.kv_cache = plan.pool_bytes(rank);
  report.num_blocks = plan.num_blocks;
  for (const plan::LedgerLine& line : rank.lines) {
    if (line.part == plan::LedgerLine::Part::kWeights) {
      report.weights += line.bytes;
    } else if (line.name == "matmul scratch") {
      report.worker_scratch += line.bytes;
    } else if (line.part != plan::LedgerLine::Part::kOther) {
      report.arena += line.bytes;
    } else if (line.name == "tokenizer") {
      report.tokenizer += line.bytes;
    } else if (line.name == "process") {
      prediction.process_bytes += line.bytes;
    } else {
      report.other += line.bytes;
    }
  }
  return prediction;
}

/// Loads what was planned and holds it against the plan.
int verify(const PlanCommand& command, llm::Options llm, const plan::Plan& plan) {
  if (plan.ranks.size() != 1 || plan.options.device.kind != plan::Device::Kind::kCpu ||
      plan.options.record.format != nullptr) {
    throw LoadError("--verify", "needs a plan for one rank on this machine, in the stored format");
  }
  if (!plan.fits)
    throw LoadError("--verify", fmt::format("the plan does not fit: {}", plan.problem));
  llm.model = resolve_model(command.model.model, command.model.quiet);
  llm.max_model_len = plan.max_model_len;
  const llm::Verification done = llm::verify_memory(llm, prediction_of(plan));
  fmt::print(command.json ? stderr : stdout, "\n{}", llm::format_verification(done));
  return done.ok() ? 0 : 4;
}

int run_plan(PlanCommand& command) {
  if (command.table) {
    fmt::print("{}", plan::model_table());
    return 0;
  }
  if (command.users < 0 || command.prompt_len < 0 || command.output_len < 0) {
    throw LoadError("--users, --prompt-len, --output-len", "numbers of 1 or more");
  }
  ModelOptions engine = command.model;
  // What the engine would refuse to run can be planned.
  engine.tensor_parallel_size = engine.pipeline_parallel_size = 1;
  engine.quantization.clear();
  const llm::Options llm = engine_options(engine);
  plan::PlanOptions options = plan_options(command, llm);
  const plan::Plan plan = plan::make_plan(open_model(command.model), std::move(options));
  const plan::Report report = make_report(command, plan);
  if (command.json) {
    fmt::print("{}\n", boost::json::serialize(plan::report_json(report)));
  } else {
    fmt::print("{}", plan::report_text(report));
  }
  if (!command.html.empty()) write_file(command.html, plan::report_html(report));
  if (!command.svg.empty()) write_pictures(command.svg, report);
  if (!command.write_config.empty()) {
    if (!report.config) throw LoadError(command.write_config, "not written: the plan does not fit");
    write_file(command.write_config, report.config->yaml());
  }
  if (command.verify) return verify(command, llm, plan);
  return plan.fits ? 0 : 3;
}

}  // namespace

Action add_plan(CLI::App& command) {
  auto options = std::make_shared<PlanCommand>();
  command.add_option("model_tag", options->model.model,
                     "a GGUF file, a Hugging Face folder, a config.json, a catalogue name, or a "
                     "public model by name (Llama-3.1-8B)");
  add_model_options(command, options->model);
  command
      .add_option("--device", options->device,
                  "this machine, or a device by name (H100, \"RTX 4090\", \"EPYC 9654\")")
      ->capture_default_str();
  command.add_option("--device-file", options->device_file,
                     "a JSON file of devices to use instead; see docs/plan.md");
  command.add_option("--memory", options->memory,
                     "memory of one device (8GiB, 24GB) instead of the device's own");
  command.add_option("--users", options->users,
                     "users at once, each sending a request after the last one ended");
  command.add_option("--prompt-len", options->prompt_len, "tokens of a prompt (512)");
  command.add_option("--output-len", options->output_len, "tokens of an answer (128)");
  command.add_option("--lengths", options->lengths,
                     "JSON lines with input_len and output_len to draw requests from");
  command.add_flag("--enforce-eager", options->enforce_eager, "count no CUDA graphs");
  command.add_option("--write-config", options->write_config,
                     "write the settings as YAML for `quire serve --config`");
  command.add_option("--html", options->html, "write a page with pictures and all figures");
  command.add_option("--svg", options->svg,
                     "write ledger, memory, roofline and throughput as SVG to this folder");
  command.add_flag("--json", options->json, "everything as JSON on standard output");
  command.add_flag("--table", options->table, "a table of well-known models in four formats");
  command.add_flag("--verify", options->verify,
                   "then load the model, fill the KV cache, run the largest batch, and set what is "
                   "taken against what was counted");
  command.footer(
      "Nothing is loaded (but with --verify): bytes and operations are counted from the program "
      "that would run.\n"
      "Exit code 3: the model does not fit; what would is listed. 4: --verify found a difference.\n"
      "Examples:\n"
      "  quire plan smollm2:135m --users 32 --prompt-len 512 --output-len 128\n"
      "  quire plan Llama-3.1-70B --device H100 -tp 4\n"
      "  quire plan config.json --memory 8GiB --max-model-len auto --write-config serve.yaml");
  return [options] { return run_plan(*options); };
}

}  // namespace quire::apps
