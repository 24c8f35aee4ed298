#include "quire/apps/model_options.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "quire/apps/read_text.h"
#include "quire/base/cpu_count.h"
#include "quire/base/error.h"
#include "quire/base/progress.h"
#include "quire/hub/model_store.h"

namespace quire::apps {
namespace {

void refuse_unless(bool fine, const std::string& option, const std::string& expected,
                   const std::string& found) {
  if (!fine)
    throw LoadError(option, "", expected + " (others are not supported by this version)", found);
}

void add_swap_options(CLI::App& command, ModelOptions& options) {
  llm::Options& llm = options.llm;
  command.add_option(
      "--swap-space", options.swap_space_gib,
      "GiB for KV blocks that the cache has no room for: of preempted sequences, and "
      "of prefixes to be found again; taken as needed. 4 when not given, less where "
      "memory is short; 0: none");
  command.add_option("--swap-dir", llm.swap_dir,
                     "a folder to swap to a file in, instead of memory; the file goes with the "
                     "process");
  command
      .add_option("--preemption-mode", llm.preemption_mode,
                  "what happens to a sequence whose blocks are needed: swap moves them to the swap "
                  "space, recompute computes them again; auto: what should cost less. The tokens "
                  "are the same")
      ->check(CLI::IsMember({"auto", "swap", "recompute"}))
      ->capture_default_str();
  command.add_option("--kv-cache-dir", llm.kv_cache_dir,
                     "a folder for the swap space whose prefixes are found again after a restart, "
                     "with the same model and settings only");
}

/// --swap-space: GiB, as in vLLM.
int64_t swap_bytes(double gib) {
  constexpr double kMaxGiB = 1 << 20;
  if (!(gib >= 0 && gib <= kMaxGiB)) {
    throw LoadError("--swap-space", "", fmt::format("GiB, 0 to {}", kMaxGiB),
                    fmt::format("{}", gib));
  }
  return static_cast<int64_t>(gib * (1 << 30));
}

constexpr double kDefaultTargetItlMs = 150;

}  // namespace

int64_t parse_count(const std::string& text, const std::string& option) {
  const auto wrong = [&] {
    return LoadError(option, "", "a number such as 8192, 8k, 8K or 1.5G", text);
  };
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !(number >= 0) || end - rest > 1) throw wrong();
  if (rest != end) {
    constexpr std::string_view kDecimal = "kmgt";
    constexpr std::string_view kBinary = "KMGT";
    if (const size_t power = kDecimal.find(*rest); power != std::string_view::npos) {
      number *= std::pow(1000.0, static_cast<double>(power + 1));
    } else if (const size_t binary = kBinary.find(*rest); binary != std::string_view::npos) {
      number *= std::pow(1024.0, static_cast<double>(binary + 1));
    } else {
      throw wrong();
    }
  }
  if (number > 9e15 || number != std::floor(number)) throw wrong();
  return static_cast<int64_t>(number);
}

void add_model_name(CLI::App& command, ModelOptions& options) {
  command.add_option("--model,-m", options.model,
                     "a name from the catalogue (smollm2:135m), a GGUF file or a Hugging Face "
                     "folder; the default model "
                     "when not given");
  command.add_option("--chat-template", options.chat_template_file,
                     "a file with a Jinja template to use instead of the model's");
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  add_model_name(command, options);
  llm::Options& llm = options.llm;
  command.add_option("--tokenizer", llm.tokenizer,
                     "a folder to take the tokenizer from, instead of the model");
  command
      .add_option("--dtype", llm.dtype,
                  "type of unquantized weights, and of the KV cache unless set apart")
      ->check(CLI::IsMember({"auto", "half", "float16", "bfloat16", "float", "float32"}))
      ->capture_default_str();
  command
      .add_option("--activation-dtype", llm.activation_dtype,
                  "how activations meet weights: int8 (by group; fastest), bf16, fp32 (exact); "
                  "auto: int8 for quantized "
                  "weights, bf16 or fp32 like the weights for others")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "int8"}))
      ->capture_default_str();
  command.add_option("--kv-cache-dtype", llm.kv_cache_dtype, "type of the KV cache")
      ->check(CLI::IsMember({"auto", "bfloat16", "float16", "float32"}))
      ->capture_default_str();
  command.add_option("--max-model-len", options.max_model_len,
                     "longest sequence, prompt and output together (8192, 8k, auto); the model's "
                     "own when not given");
  command.add_option("--block-size", llm.block_size, "tokens a KV block holds, a multiple of 16")
      ->capture_default_str();
  command
      .add_option("--gpu-memory-utilization", llm.gpu_memory_utilization,
                  "share of the device's memory to use; on a CPU of the memory that is available")
      ->capture_default_str();
  command.add_option("--kv-cache-memory-bytes", options.kv_cache_memory_bytes,
                     "size of the KV cache (4G); overrides the share");
  command.add_option("--num-gpu-blocks-override", llm.num_gpu_blocks_override,
                     "number of KV blocks; overrides every size");
  command.add_option("--max-num-batched-tokens", options.max_num_batched_tokens,
                     "tokens computed in a step at most; when not given 2048, and fewer while "
                     "streams would wait longer than --target-itl");
  command.add_option("--target-itl", options.target_itl_ms,
                     "milliseconds that streams wait for a token while prompts are computed beside "
                     "them (150), up to twice as many while four prompts or more are waited for; "
                     "0: no care is taken. Not with --max-num-batched-tokens");
  command.add_option("--max-num-seqs", llm.max_num_seqs, "sequences computed in a step at most")
      ->capture_default_str();
  command.add_flag("--enable-chunked-prefill,!--no-enable-chunked-prefill",
                   llm.enable_chunked_prefill, "split long prompts over steps (on)");
  command
      .add_option("--long-prefill-token-threshold", llm.long_prefill_token_threshold,
                  "tokens of one prompt in a step at most; 0: all that fit")
      ->capture_default_str();
  command.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", llm.enable_prefix_caching,
                   "compute what prompts share once (on)");
  command
      .add_option("--scheduling-policy", llm.scheduling_policy,
                  "fcfs: in the order of arrival; priority: the requests' own, lower first")
      ->check(CLI::IsMember({"fcfs", "priority"}))
      ->capture_default_str();
  command
      .add_option("--threads", llm.threads,
                  "compute threads; 0: one a physical core this process may use")
      ->capture_default_str();
  command.add_option("--cpu-affinity", options.cpu_affinity,
                     "processors the compute threads are bound to, one each (0-3,6); unbound when "
                     "not given");
  command.add_option("--seed", options.seed, "accepted; requests carry their own seeds");
  command
      .add_option("--generation-config", llm.generation_config,
                  "auto: sampling defaults from the model; vllm: neutral ones")
      ->check(CLI::IsMember({"auto", "vllm"}))
      ->capture_default_str();
  command
      .add_option("--max-logprobs", llm.max_logprobs, "most likely tokens a request may ask for")
      ->capture_default_str();
  command.add_option("-q,--quantization", options.quantization,
                     "taken from the checkpoint; only checked here");
  command.add_option("--load-format", options.load_format, "auto, safetensors or gguf")
      ->check(CLI::IsMember({"auto", "safetensors", "gguf"}))
      ->capture_default_str();
  command
      .add_option("--tensor-parallel-size", options.tensor_parallel_size,
                  "ranks that share each layer (-tp)")
      ->capture_default_str();
  command
      .add_option("--pipeline-parallel-size", options.pipeline_parallel_size,
                  "ranks that share the layers (-pp)")
      ->capture_default_str();
  add_swap_options(command, options);
  command.add_flag("--quiet", options.quiet, "no progress bar and no memory table");
}

llm::Options engine_options(const ModelOptions& options) {
  refuse_unless(options.tensor_parallel_size == 1, "--tensor-parallel-size", "1",
                std::to_string(options.tensor_parallel_size));
  refuse_unless(options.pipeline_parallel_size == 1, "--pipeline-parallel-size", "1",
                std::to_string(options.pipeline_parallel_size));
  refuse_unless(options.quantization.empty() || options.quantization == "gguf", "--quantization",
                "gguf or nothing", options.quantization);
  llm::Options llm = options.llm;
  if (options.max_model_len == "auto" || options.max_model_len == "-1") {
    llm.max_model_len = llm::Options::kLongestThatFits;
  } else if (!options.max_model_len.empty()) {
    llm.max_model_len = parse_count(options.max_model_len, "--max-model-len");
  }
  if (!options.cpu_affinity.empty()) {
    const auto cpus = parse_cpu_list(options.cpu_affinity);
    if (!cpus) {
      throw LoadError("--cpu-affinity", "", "different processors such as 0-3,6",
                      options.cpu_affinity);
    }
    llm.cpu_affinity = *cpus;
  }
  if (!options.kv_cache_memory_bytes.empty()) {
    llm.kv_cache_memory_bytes =
        parse_count(options.kv_cache_memory_bytes, "--kv-cache-memory-bytes");
  }
  llm.target_itl_ms = options.target_itl_ms.value_or(kDefaultTargetItlMs);
  if (!options.max_num_batched_tokens.empty()) {
    if (options.target_itl_ms.value_or(0) != 0) {
      throw LoadError("--target-itl", "", "0, since --max-num-batched-tokens fixes the budget",
                      fmt::format("{}", *options.target_itl_ms));
    }
    llm.max_num_batched_tokens =
        parse_count(options.max_num_batched_tokens, "--max-num-batched-tokens");
    llm.target_itl_ms = 0;
  }
  if (options.swap_space_gib) llm.swap_space_bytes = swap_bytes(*options.swap_space_gib);
  if (!options.chat_template_file.empty())
    llm.chat_template = read_text(options.chat_template_file);
  return llm;
}

std::string resolve_model(const std::string& name, bool quiet) {
  const hub::ModelStore store({.cache_folder = hub::ModelStore::default_cache_folder()});
  const std::string wanted = name.empty() ? store.catalogue().default_entry().name : name;
  if (const auto path = store.resolve(wanted)) return *path;
  if (quiet) return store.pull(wanted);
  ProgressBar bar;
  hub::PullOptions pull;
  pull.on_progress = [&](const hub::PullProgress& progress) {
    bar.update(fmt::format("{}: {}", wanted, phase_name(progress.phase)), progress.done,
               progress.total);
  };
  return store.pull(wanted, pull);
}

std::string shown_name(const std::string& name) {
  return name.empty() ? hub::Catalogue::built_in().default_entry().name : name;
}

std::unique_ptr<llm::LLM> open_model(const ModelOptions& options, const std::string& path) {
  llm::Options llm = engine_options(options);
  llm.model = path;
  if (options.quiet) return std::make_unique<llm::LLM>(std::move(llm));
  ProgressBar bar;
  llm.on_load_progress = [&](int64_t done, int64_t total) {
    bar.update("packing weights", done, total);
  };
  return std::make_unique<llm::LLM>(std::move(llm));
}

}  // namespace quire::apps
