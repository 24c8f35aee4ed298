#include "quire/checkpoint/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/checkpoint/config_limits.h"
#include "quire/checkpoint/gguf_source.h"

namespace quire::checkpoint {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr uint64_t kMaxMerges = 1 << 25;

std::string hf_architecture(std::string_view architecture, bool has_experts) {
  if (architecture == "llama") return has_experts ? "MixtralForCausalLM" : "LlamaForCausalLM";
  if (architecture == "qwen2") return "Qwen2ForCausalLM";
  return std::string(architecture);
}

/// Rows of the embedding, which is as wide as the logits; the vocabulary may be padded up to it.
int64_t read_vocab_size(const GgufFile& file, const std::string& arch) {
  const GgufMetadata& metadata = file.metadata();
  const auto declared = metadata.integer(arch + ".vocab_size", 1, kMaxVocab);
  const auto tokens = metadata.array_size(kTokens);
  const GgufTensor* embedding = file.find("token_embd.weight");
  int64_t size = 0;
  if (embedding != nullptr) {
    if (embedding->num_dims != 2 || embedding->dims[1] > static_cast<uint64_t>(kMaxVocab)) {
      throw LoadError(
          file.file(), "token_embd.weight",
          fmt::format("2 dimensions with at most {} rows", kMaxVocab),
          fmt::format("{} dimensions, {} rows", embedding->num_dims, embedding->dims[1]));
    }
    size = static_cast<int64_t>(embedding->dims[1]);
  } else if (declared) {
    size = *declared;
  } else if (tokens) {
    size = static_cast<int64_t>(std::min<uint64_t>(*tokens, kMaxVocab));
  }
  if (size == 0) throw LoadError(file.file(), kTokens, "a vocabulary", "none");
  if (tokens && *tokens > static_cast<uint64_t>(size)) {
    throw LoadError(file.file(), kTokens, fmt::format("at most {} tokens", size),
                    fmt::format("{}", *tokens));
  }
  return size;
}

std::vector<float> read_divisors(const GgufTensor& tensor, const std::string& file,
                                 int64_t head_dim) {
  const auto count = static_cast<uint64_t>(head_dim / 2);
  if (tensor.dtype != DType::kF32 || tensor.num_dims != 1 || tensor.dims[0] != count) {
    throw LoadError(file, kRopeFreqsTensor, fmt::format("F32 [{}]", count),
                    fmt::format("{} with {} dimensions, the first {}", dtype_name(tensor.dtype),
                                tensor.num_dims, tensor.dims[0]));
  }
  std::vector<float> divisors(count);
  std::memcpy(divisors.data(), tensor.bytes.data(), tensor.bytes.size());
  for (const float divisor : divisors) {
    if (!(divisor > 0.0f) || !std::isfinite(divisor)) {
      throw LoadError(file, kRopeFreqsTensor, "divisors above 0", fmt::format("{}", divisor));
    }
  }
  return divisors;
}

RopeScaling read_rope_scaling(const GgufFile& file, const std::string& arch, int64_t head_dim) {
  const GgufMetadata& metadata = file.metadata();
  RopeScaling scaling;
  const std::string type_key = arch + ".rope.scaling.type";
  const auto old_factor = metadata.number(arch + ".rope.scale_linear");
  const auto type = metadata.string(type_key).value_or(old_factor ? "linear" : "none");
  if (type != "none" && type != "linear") {
    throw LoadError(file.file(), type_key, "none or linear (others are not supported yet)",
                    printable(type));
  }
  if (type == "linear") {
    const std::string factor_key = arch + ".rope.scaling.factor";
    scaling.kind = RopeScaling::Kind::kLinear;
    scaling.factor = checked_number(metadata.number(factor_key).value_or(old_factor.value_or(1.0)),
                                    1.0, 1e6, file.file(), factor_key);
  }
  const GgufTensor* divisors = file.find(kRopeFreqsTensor);
  if (divisors == nullptr) return scaling;
  if (scaling.kind != RopeScaling::Kind::kNone) {
    throw LoadError(file.file(), type_key, "none beside a rope_freqs tensor", printable(type));
  }
  scaling.kind = RopeScaling::Kind::kDivisors;
  scaling.divisors = read_divisors(*divisors, file.file(), head_dim);
  return scaling;
}

/// The type that the weights are stored in; bf16 when they are quantized.
DType read_dtype(const GgufFile& file) {
  const GgufTensor* weight = file.find("blk.0.attn_q.weight");
  return weight != nullptr && !is_block_quantized(weight->dtype) ? weight->dtype : DType::kBF16;
}

void read_special_tokens(const GgufMetadata& metadata, ModelConfig& config) {
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    const auto id = metadata.integer(key, 0, config.vocab_size - 1);
    if (!id) continue;
    const auto token = static_cast<int32_t>(*id);
    if (std::ranges::find(config.eos_token_ids, token) == config.eos_token_ids.end()) {
      config.eos_token_ids.push_back(token);
    }
  }
  if (const auto id = metadata.integer("tokenizer.ggml.bos_token_id", 0, config.vocab_size - 1)) {
    config.bos_token_id = static_cast<int32_t>(*id);
  }
}

void read_sizes(const GgufMetadata& metadata, const std::string& arch, ModelConfig& config) {
  const auto size = [&](const char* key, int64_t most) {
    return metadata.required_integer(arch + key, 1, most);
  };
  config.hidden_size = size(".embedding_length", kMaxHidden);
  config.intermediate_size = size(".feed_forward_length", kMaxIntermediate);
  config.num_layers = size(".block_count", kMaxLayers);
  config.max_position = size(".context_length", kMaxPosition);
  const std::string heads = arch + ".attention.head_count";
  const std::string kv_heads = heads + "_kv";
  const std::string head_dim = arch + ".attention.key_length";
  config.num_heads = metadata.required_integer(heads, 1, kMaxHeads);
  config.num_kv_heads = metadata.integer(kv_heads, 1, kMaxHeads).value_or(config.num_heads);
  config.head_dim = metadata.integer(head_dim, 2, kMaxHeadDim).value_or(0);
  complete_heads(config, metadata.file(), {heads, kv_heads, head_dim});
}

/// What the Llama family leaves no choice in.
void check_family(const GgufFile& file, const std::string& arch, const ModelConfig& config) {
  const GgufMetadata& metadata = file.metadata();
  for (const char* key : {".attention.value_length", ".rope.dimension_count"}) {
    const auto value = metadata.integer(arch + key, 0, kMaxPosition);
    if (value && *value != config.head_dim) {
      throw LoadError(file.file(), arch + key,
                      fmt::format("{}, the head dimension", config.head_dim),
                      fmt::format("{}", *value));
    }
  }
}

}  // namespace

ModelConfig gguf_model_config(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const std::string arch(metadata.required_string("general.architecture"));
  ModelConfig config;
  const bool has_experts = metadata.integer(arch + ".expert_count", 0, kMaxHeads).value_or(0) > 0;
  config.architecture = hf_architecture(arch, has_experts);
  config.model_type = arch;
  read_sizes(metadata, arch, config);
  config.vocab_size = read_vocab_size(file, arch);
  read_special_tokens(metadata, config);
  config.dtype = read_dtype(file);
  config.tie_word_embeddings = file.find("output.weight") == nullptr;
  config.attention_bias = file.find("blk.0.attn_q.bias") != nullptr;
  config.attention_output_bias = file.find("blk.0.attn_output.bias") != nullptr;
  config.mlp_bias = file.find("blk.0.ffn_down.bias") != nullptr;
  const bool known = is_known_architecture(config.architecture);
  const std::string eps_key = arch + ".attention.layer_norm_rms_epsilon";
  const auto eps = metadata.number(eps_key);
  if (!eps && known) throw LoadError(file.file(), eps_key, "a number", "no such key");
  if (eps) config.rms_norm_eps = checked_number(*eps, 1e-12, 1.0, file.file(), eps_key);
  const std::string base_key = arch + ".rope.freq_base";
  config.rope_theta =
      checked_number(metadata.number(base_key).value_or(10000.0), 1.0, 1e12, file.file(), base_key);
  config.rope_scaling = read_rope_scaling(file, arch, config.head_dim);
  if (known) check_family(file, arch, config);
  return config;
}

bool has_gguf_tokenizer(const GgufMetadata& metadata) {
  return metadata.has(kTokens);
}

GgufTokenizerFields gguf_tokenizer_fields(const GgufMetadata& metadata) {
  const auto id = [&](const char* key) {
    return metadata.integer(key, std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int64_t>::max());
  };
  GgufTokenizerFields fields;
  fields.model = metadata.required_string("tokenizer.ggml.model");
  fields.pre = metadata.string("tokenizer.ggml.pre").value_or("");
  fields.tokens = metadata.strings(kTokens, kMaxVocab).value_or(std::vector<std::string>());
  fields.token_types =
      metadata.integers("tokenizer.ggml.token_type", kMaxVocab).value_or(std::vector<int32_t>());
  fields.merges =
      metadata.strings("tokenizer.ggml.merges", kMaxMerges).value_or(std::vector<std::string>());
  fields.bos_id = id("tokenizer.ggml.bos_token_id");
  fields.eos_id = id("tokenizer.ggml.eos_token_id");
  fields.eot_id = id("tokenizer.ggml.eot_token_id");
  fields.unk_id = id("tokenizer.ggml.unknown_token_id");
  fields.pad_id = id("tokenizer.ggml.padding_token_id");
  fields.add_bos = metadata.boolean("tokenizer.ggml.add_bos_token");
  fields.add_eos = metadata.boolean("tokenizer.ggml.add_eos_token");
  return fields;
}

}  // namespace quire::checkpoint
