#include "quire/checkpoint/testing/small_llama.h"

#include <array>
#include <string_view>

#include "quire/checkpoint/testing/little_endian.h"

namespace quire::checkpoint::testing {
namespace {

constexpr int64_t kHidden = 32;
constexpr int64_t kIntermediate = 64;
constexpr int64_t kKvRows = 16;
constexpr int64_t kVocab = 6;

struct Matrix {
  std::string_view gguf;
  std::string_view hf;
  int64_t rows;
  int64_t cols;
};

constexpr std::array<Matrix, 8> kMatrices = {{
    {"token_embd", "model.embed_tokens", kVocab, kHidden},
    {"blk.0.attn_q", "model.layers.0.self_attn.q_proj", kHidden, kHidden},
    {"blk.0.attn_k", "model.layers.0.self_attn.k_proj", kKvRows, kHidden},
    {"blk.0.attn_v", "model.layers.0.self_attn.v_proj", kKvRows, kHidden},
    {"blk.0.attn_output", "model.layers.0.self_attn.o_proj", kHidden, kHidden},
    {"blk.0.ffn_gate", "model.layers.0.mlp.gate_proj", kIntermediate, kHidden},
    {"blk.0.ffn_up", "model.layers.0.mlp.up_proj", kIntermediate, kHidden},
    {"blk.0.ffn_down", "model.layers.0.mlp.down_proj", kHidden, kIntermediate},
}};

constexpr std::array<Matrix, 3> kNorms = {{
    {"output_norm", "model.norm", 1, kHidden},
    {"blk.0.attn_norm", "model.layers.0.input_layernorm", 1, kHidden},
    {"blk.0.ffn_norm", "model.layers.0.post_attention_layernorm", 1, kHidden},
}};

std::string weight(std::string_view stem) {
  return std::string(stem) + ".weight";
}

}  // namespace

GgufWriter small_llama_gguf_config() {
  GgufWriter writer;
  writer.set_string("general.architecture", "llama")
      .set_u32("llama.block_count", 1)
      .set_u32("llama.context_length", 128)
      .set_u32("llama.embedding_length", kHidden)
      .set_u32("llama.feed_forward_length", kIntermediate)
      .set_u32("llama.attention.head_count", 4)
      .set_u32("llama.attention.head_count_kv", 2)
      .set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .set_f32("llama.rope.freq_base", 10000.0f);
  return writer;
}

GgufWriter small_llama_gguf() {
  GgufWriter writer = small_llama_gguf_config();
  writer.set_string("tokenizer.ggml.model", "gpt2")
      .set_string("tokenizer.ggml.pre", "smollm")
      .set_strings("tokenizer.ggml.tokens", {"<s>", "</s>", "a", "b", "ab", "c"})
      .set_i32s("tokenizer.ggml.token_type", {3, 3, 1, 1, 1, 1})
      .set_strings("tokenizer.ggml.merges", {"a b"})
      .set_u32("tokenizer.ggml.bos_token_id", 0)
      .set_u32("tokenizer.ggml.eos_token_id", 1)
      .set_bool("tokenizer.ggml.add_bos_token", false)
      .set_string("tokenizer.chat_template", "{{ messages[0]['content'] }}");
  for (const Matrix& matrix : kMatrices) {
    const std::vector<std::byte> zeros(
        static_cast<size_t>(matrix.rows * row_bytes(DType::kQ4_0, matrix.cols)));
    writer.add_tensor(weight(matrix.gguf), DType::kQ4_0, {matrix.rows, matrix.cols}, zeros);
  }
  for (const Matrix& norm : kNorms) {
    writer.add_f32(weight(norm.gguf), {norm.cols}, std::vector<float>(kHidden, 1.0f));
  }
  return writer;
}

GgufWriter block_formats_gguf() {
  GgufWriter writer = small_llama_gguf_config();
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
                           DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K,
                           DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    const std::vector<std::byte> zeros(static_cast<size_t>(2 * row_bytes(type, 256)));
    writer.add_tensor(dtype_name(type), type, {2, 256}, zeros);
  }
  return writer;
}

std::string small_llama_config_json() {
  return R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,
  "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 6, "max_position_embeddings": 128,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true,
  "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 1
}
)";
}

SafetensorsWriter small_llama_safetensors() {
  SafetensorsWriter writer;
  for (const Matrix& matrix : kMatrices) {
    const std::vector<float> zeros(static_cast<size_t>(matrix.rows * matrix.cols));
    writer.add_f32(weight(matrix.hf), {matrix.rows, matrix.cols}, zeros);
  }
  for (const Matrix& norm : kNorms) {
    writer.add_f32(weight(norm.hf), {norm.cols}, std::vector<float>(kHidden, 1.0f));
  }
  return writer;
}

void write_small_llama(const std::string& folder) {
  write_file(folder + "/config.json", to_bytes(small_llama_config_json()));
  small_llama_safetensors().write(folder + "/model.safetensors");
}

}  // namespace quire::checkpoint::testing
