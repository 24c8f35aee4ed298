// ModelConfig: what a checkpoint says about its architecture, the same for GGUF metadata and HF's
// config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quire/tensor/dtype.h"

namespace quire::checkpoint {

/// Rotary scaling. Kind kLlama3: as in Llama 3.1's config (factor, low/high frequency factors,
/// original length). Kind kDivisors: GGUF's rope_freqs tensor, by which the frequencies are
/// divided.
struct RopeScaling {
  enum class Kind : uint8_t { kNone, kLinear, kLlama3, kDivisors };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position = 8192;
  std::vector<float> divisors;  // [head_dim / 2]
};

struct ModelConfig {
  std::string architecture;  // HF's name: "LlamaForCausalLM"
  std::string model_type;    // "llama"
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t max_position = 0;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  bool attention_bias = false;         // q, k, v
  bool attention_output_bias = false;  // o: HF Llama's attention_bias covers it, Qwen2's does not
  bool mlp_bias = false;
  bool tie_word_embeddings = false;
  std::string hidden_act = "silu";
  DType dtype = DType::kBF16;  // the checkpoint's own (torch_dtype)
  std::vector<int32_t>
      eos_token_ids;  // from generation_config.json, else config.json or the GGUF's metadata
  std::optional<int32_t> bos_token_id;
};

/// Sampling defaults the model ships (generation_config.json); unset where it says nothing.
struct GenerationDefaults {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<int64_t> max_new_tokens;
};

}  // namespace quire::checkpoint
