#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/base/mapped_file.h"
#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/config_limits.h"
#include "quire/checkpoint/gguf_config.h"
#include "quire/checkpoint/gguf_source.h"
#include "quire/checkpoint/hf_config.h"
#include "quire/checkpoint/safetensors_source.h"
#include "quire/checkpoint/tokenizer_json.h"

namespace quire::checkpoint {
namespace {

namespace fs = std::filesystem;

/// False too for what cannot be looked at; opening it then says why.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Checkpoint open_gguf(const std::string& path) {
  const auto mapping = std::make_shared<const MappedFile>(path);
  const GgufFile file(mapping->bytes(), path);
  Checkpoint checkpoint;
  checkpoint.source_path = path;
  checkpoint.config = gguf_model_config(file);
  checkpoint.tensors = std::make_shared<const GgufSource>(file, mapping);
  settle_tied_head(checkpoint.config, *checkpoint.tensors);
  if (has_gguf_tokenizer(file.metadata())) {
    checkpoint.tokenizer = tokenizer_spec_from_gguf(gguf_tokenizer_fields(file.metadata()), path);
  }
  checkpoint.chat_template = file.metadata().string("tokenizer.chat_template").value_or("");
  return checkpoint;
}

Checkpoint open_hf_folder(const std::string& path) {
  const fs::path folder(path);
  Checkpoint checkpoint;
  checkpoint.source_path = path;
  checkpoint.config = hf_model_config(JsonConfig::read_file((folder / "config.json").string()));
  if (is_there(folder / "generation_config.json")) {
    checkpoint.generation = hf_generation_defaults(
        JsonConfig::read_file((folder / "generation_config.json").string()), checkpoint.config);
  }
  checkpoint.tensors = std::make_shared<const SafetensorsSource>(path);
  settle_tied_head(checkpoint.config, *checkpoint.tensors);
  if (is_there(folder / "tokenizer.json")) {
    HfTokenizerFiles files = read_hf_tokenizer(path);
    checkpoint.tokenizer = std::move(files.spec);
    checkpoint.chat_template = std::move(files.chat_template);
  }
  return checkpoint;
}

std::vector<std::string> gguf_files_in(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".gguf") found.push_back(entry->path().string());
  }
  if (error) throw LoadError(path, error.message());
  return found;
}

}  // namespace

Checkpoint open_checkpoint(const std::string& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw LoadError(path, "", "a GGUF file or an HF folder", "nothing of this name");
  }
  if (error) throw LoadError(path, error.message());
  if (!fs::is_directory(status)) return open_gguf(path);
  if (is_there(fs::path(path) / "config.json")) return open_hf_folder(path);
  const auto files = gguf_files_in(path);
  if (files.size() == 1) return open_gguf(files.front());
  throw LoadError(path, "", "a config.json with safetensors beside it, or exactly one .gguf file",
                  files.empty() ? "neither" : fmt::format("{} .gguf files", files.size()));
}

}  // namespace quire::checkpoint
