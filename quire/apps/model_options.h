// ModelOptions: the options all commands that open a model share, by vLLM's names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "quire/llm/llm.h"

namespace quire::apps {

struct ModelOptions {
  std::string model;  // a catalogue name, a GGUF file or an HF folder; empty: the default model
  std::string max_model_len;
  std::string chat_template_file;
  std::string kv_cache_memory_bytes;
  std::string cpu_affinity;
  std::string max_num_batched_tokens;  // empty: 2,048, or fewer for the sake of target_itl_ms
  std::optional<double> target_itl_ms;
  int32_t tensor_parallel_size = 1;
  int32_t pipeline_parallel_size = 1;
  std::string quantization;
  std::string load_format = "auto";
  std::optional<double> swap_space_gib;
  uint64_t seed = 0;
  bool quiet = false;  // no progress bar, no memory table
  llm::Options llm;
};

/// Adds the options to a subcommand. `options` must live as long as the parser.
void add_model_options(CLI::App& command, ModelOptions& options);

/// Model, tokenizer and template only: for the commands that compute nothing.
void add_model_name(CLI::App& command, ModelOptions& options);

/// What the texts stand for; throws LoadError for a value that means nothing or asks for what is
/// not built.
llm::Options engine_options(const ModelOptions& options);

/// The file or folder of `name`, pulled first (with progress) when it is a catalogue name that is
/// not here yet.
std::string resolve_model(const std::string& name, bool quiet);

/// The name as the API shows it: the default model's when empty.
std::string shown_name(const std::string& name);

/// Opens the file or folder at `path`, with a progress bar on stderr.
std::unique_ptr<llm::LLM> open_model(const ModelOptions& options, const std::string& path);

/// "8192", "8k" (1,000s), "8K" (1,024s), "1.5G": what vLLM takes. Throws LoadError naming `option`.
int64_t parse_count(const std::string& text, const std::string& option);

}  // namespace quire::apps
