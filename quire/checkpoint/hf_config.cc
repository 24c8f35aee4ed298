#include "quire/checkpoint/hf_config.h"

#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/checkpoint/byte_cursor.h"
#include "quire/checkpoint/config_limits.h"

namespace quire::checkpoint {
namespace {

/// What transformers assumes for a key that config.json leaves out.
struct TypeDefaults {
  int64_t num_kv_heads = 0;  // 0: as many as query heads
  int64_t max_position = 2048;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
};

TypeDefaults defaults_of(std::string_view model_type) {
  if (model_type == "qwen2") return {32, 32768, 1e-6, false};
  if (model_type == "mistral") return {8, 131072, 1e-6, false};
  return {};
}

void reject(const JsonConfig& json, std::string_view key, std::string_view expected,
            std::string_view found) {
  throw LoadError(json.where(), json.full_key(key), expected, printable(found));
}

void reject_quantized(const JsonConfig& json) {
  const auto quantization = json.object("quantization_config");
  if (!quantization) return;
  const auto method = quantization->string("quant_method").value_or("none named");
  throw LoadError(
      json.where(),
      fmt::format("not supported yet: quantization_config.quant_method {}", printable(method)));
}

DType read_dtype(const JsonConfig& json) {
  const char* key = json.has("dtype") ? "dtype" : "torch_dtype";
  const auto name = json.string(key).value_or("float32");
  if (name == "float32") return DType::kF32;
  if (name == "float16") return DType::kF16;
  if (name != "bfloat16") reject(json, key, "float32, float16 or bfloat16", name);
  return DType::kBF16;
}

RopeScaling read_llama3(const JsonConfig& json) {
  RopeScaling scaling;
  scaling.kind = RopeScaling::Kind::kLlama3;
  scaling.factor = json.required_number("factor", 1.0, 1e6);
  scaling.low_freq_factor = json.required_number("low_freq_factor", 1e-6, 1e6);
  scaling.high_freq_factor = json.required_number("high_freq_factor", 1e-6, 1e6);
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    reject(json, "high_freq_factor", "more than low_freq_factor",
           fmt::format("{}", scaling.high_freq_factor));
  }
  scaling.original_max_position =
      json.required_integer("original_max_position_embeddings", 1, kMaxPosition);
  return scaling;
}

/// Both spellings: `rope_scaling` (kind under rope_type or type) beside a top-level rope_theta, and
/// the newer `rope_parameters`, which holds rope_theta too.
void read_rope(const JsonConfig& json, ModelConfig& config) {
  constexpr double kMaxTheta = 1e12;
  config.rope_theta = json.number("rope_theta", 1.0, kMaxTheta).value_or(10000.0);
  auto scaling = json.object("rope_parameters");
  if (scaling) {
    config.rope_theta = scaling->number("rope_theta", 1.0, kMaxTheta).value_or(config.rope_theta);
  } else {
    scaling = json.object("rope_scaling");
  }
  if (!scaling) return;
  const char* key = scaling->has("rope_type") ? "rope_type" : "type";
  const auto kind = scaling->string(key).value_or("default");
  if (kind == "linear") {
    config.rope_scaling.kind = RopeScaling::Kind::kLinear;
    config.rope_scaling.factor = scaling->required_number("factor", 1.0, 1e6);
  } else if (kind == "llama3") {
    config.rope_scaling = read_llama3(*scaling);
  } else if (kind != "default") {
    reject(*scaling, key, "default, linear or llama3 (others are not supported yet)", kind);
  }
}

void read_biases(const JsonConfig& json, ModelConfig& config) {
  if (config.model_type == "qwen2") {
    config.attention_bias = true;
    return;
  }
  config.attention_bias = json.boolean("attention_bias").value_or(false);
  config.attention_output_bias = config.attention_bias;
  config.mlp_bias = json.boolean("mlp_bias").value_or(false);
}

/// Features that the architectures read here can ask for and that would silently change the result.
void reject_unsupported(const JsonConfig& json, const ModelConfig& config) {
  if (!is_known_architecture(config.architecture)) return;
  const auto window = json.integer("sliding_window", 0, kMaxPosition).value_or(0);
  const bool used = config.model_type == "qwen2"
                        ? json.boolean("use_sliding_window").value_or(false)
                        : window > 0 && window < config.max_position;
  if (used) {
    reject(json, "sliding_window", "none (not supported yet)", fmt::format("{}", window));
  }
  const auto partial = json.number("partial_rotary_factor", 0.0, 1.0).value_or(1.0);
  if (partial != 1.0) {
    reject(json, "partial_rotary_factor", "1 (others are not supported yet)",
           fmt::format("{}", partial));
  }
}

std::vector<int32_t> read_end_tokens(const JsonConfig& json, int64_t vocab_size) {
  std::vector<int32_t> ids;
  const auto listed = json.integers("eos_token_id", 0, vocab_size - 1);
  for (const int64_t id : listed.value_or(std::vector<int64_t>())) {
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace

ModelConfig hf_model_config(const JsonConfig& json) {
  ModelConfig config;
  const auto architectures = json.strings("architectures");
  if (!architectures || architectures->empty()) {
    reject(json, "architectures", "a list with one name", architectures ? "none" : "no such key");
  }
  config.architecture = architectures->front();
  config.model_type = json.string("model_type").value_or("");
  reject_quantized(json);

  const TypeDefaults defaults = defaults_of(config.model_type);
  config.hidden_size = json.required_integer("hidden_size", 1, kMaxHidden);
  config.intermediate_size = json.required_integer("intermediate_size", 1, kMaxIntermediate);
  config.num_layers = json.required_integer("num_hidden_layers", 1, kMaxLayers);
  config.num_heads = json.required_integer("num_attention_heads", 1, kMaxHeads);
  const int64_t kv_default = defaults.num_kv_heads == 0 || json.has("num_key_value_heads")
                                 ? config.num_heads
                                 : defaults.num_kv_heads;
  config.num_kv_heads = json.integer("num_key_value_heads", 1, kMaxHeads).value_or(kv_default);
  config.head_dim = json.integer("head_dim", 2, kMaxHeadDim).value_or(0);
  complete_heads(config, json.where(), {"num_attention_heads", "num_key_value_heads", "head_dim"});
  config.vocab_size = json.required_integer("vocab_size", 1, kMaxVocab);
  config.max_position =
      json.integer("max_position_embeddings", 1, kMaxPosition).value_or(defaults.max_position);
  config.rms_norm_eps = json.number("rms_norm_eps", 1e-12, 1.0).value_or(defaults.rms_norm_eps);
  config.hidden_act = json.string("hidden_act").value_or("silu");
  config.tie_word_embeddings =
      json.boolean("tie_word_embeddings").value_or(defaults.tie_word_embeddings);
  config.dtype = read_dtype(json);
  read_rope(json, config);
  read_biases(json, config);
  reject_unsupported(json, config);
  config.eos_token_ids = read_end_tokens(json, config.vocab_size);
  if (const auto id = json.integer("bos_token_id", 0, config.vocab_size - 1)) {
    config.bos_token_id = static_cast<int32_t>(*id);
  }
  return config;
}

GenerationDefaults hf_generation_defaults(const JsonConfig& json, ModelConfig& config) {
  GenerationDefaults defaults;
  defaults.temperature = json.number("temperature", 0.0, 1e6);
  defaults.top_p = json.number("top_p", 0.0, 1.0);
  defaults.top_k = json.integer("top_k", -1, kMaxVocab);
  defaults.min_p = json.number("min_p", 0.0, 1.0);
  defaults.repetition_penalty = json.number("repetition_penalty", 1e-6, 1e6);
  defaults.max_new_tokens = json.integer("max_new_tokens", 1, std::numeric_limits<int32_t>::max());
  if (auto ids = read_end_tokens(json, config.vocab_size); !ids.empty()) {
    config.eos_token_ids = std::move(ids);
  }
  return defaults;
}

}  // namespace quire::checkpoint
