#include "quire/plan/planned_model.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/config_limits.h"
#include "quire/checkpoint/hf_config.h"
#include "quire/checkpoint/safetensors_source.h"

namespace quire::plan {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw LoadError(path.string(), "", "a config.json", "nothing that can be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int64_t integer_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_int64()) return 0;
  return value->as_int64();
}

bool flag_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

std::string string_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

/// Takes out what the engine refuses to run but a plan can count: sliding windows, and quantized
/// checkpoints that it cannot read yet.
void take_window(json::object& config, PlannedModel& model) {
  const int64_t window = integer_of(config, "sliding_window");
  const bool used = string_of(config, "model_type") == "qwen2"
                        ? flag_of(config, "use_sliding_window")
                        : window > 0 && window < integer_of(config, "max_position_embeddings");
  if (used && window > 0) {
    model.window = window;
    model.notes.push_back(fmt::format(
        "The layers look back {} tokens at most, and the KV cache is counted so: a sequence never "
        "holds more than the window and one block. The engine does not run such models yet.",
        window));
  }
  config.erase("sliding_window");
  config.erase("use_sliding_window");
}

void take_quantization(json::object& config, PlannedModel& model) {
  const json::value* value = config.if_contains("quantization_config");
  if (value == nullptr || !value->is_object()) return;
  const json::object& quantization = value->as_object();
  const std::string method = string_of(quantization, "quant_method");
  const int64_t bits = integer_of(quantization, "bits");
  if ((method == "gptq" || method == "awq") && (bits == 4 || bits == 0)) {
    model.quantized_as = method + "-4";
  } else if (method == "bitsandbytes") {
    model.quantized_as = flag_of(quantization, "load_in_8bit") ? "int8" : "nf4";
  }
  if (!model.quantized_as.empty()) config.erase("quantization_config");
}

bool has_safetensors(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "model.safetensors", error) ||
         fs::exists(folder / "model.safetensors.index.json", error);
}

}  // namespace

PlannedModel planned_model_from_config(std::string_view text, const std::string& name) {
  PlannedModel model;
  model.name = name;
  json::error_code error;
  json::value root = json::parse(text, error);
  if (error || !root.is_object()) {
    throw LoadError(name, "", "a JSON object", error ? error.message() : "another value");
  }
  take_window(root.as_object(), model);
  take_quantization(root.as_object(), model);
  model.config = checkpoint::hf_model_config(checkpoint::JsonConfig(json::serialize(root), name));
  return model;
}

PlannedModel open_planned_model(const std::string& path) {
  std::error_code error;
  const fs::path given(path);
  if (!fs::exists(given, error)) {
    throw LoadError(path, "", "a GGUF file, an HF folder or a config.json", "nothing of this name");
  }
  const bool folder = fs::is_directory(given, error);
  const fs::path config = folder ? given / "config.json" : given;
  if (folder ? fs::exists(config, error) : config.extension() == ".json") {
    PlannedModel model = planned_model_from_config(read_text(config), config.string());
    model.name = path;
    if (!folder || !has_safetensors(given)) return model;
    // A quantized file's tensors are not the model's matrices.
    if (!model.quantized_as.empty()) return model;
    auto tensors = std::make_shared<const checkpoint::SafetensorsSource>(path);
    checkpoint::settle_tied_head(model.config, *tensors);
    model.tensors = std::move(tensors);
    return model;
  }
  PlannedModel model;
  model.name = path;
  checkpoint::Checkpoint opened = checkpoint::open_checkpoint(path);
  model.config = std::move(opened.config);
  model.tensors = std::move(opened.tensors);
  return model;
}

}  // namespace quire::plan
