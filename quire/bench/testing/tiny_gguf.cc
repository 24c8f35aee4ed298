#include "quire/bench/testing/tiny_gguf.h"

#include <cstring>
#include <vector>

#include "quire/bench/random.h"
#include "quire/checkpoint/testing/gguf_writer.h"
#include "quire/tensor/dtype.h"

namespace quire::bench::testing {
namespace {

constexpr int64_t kHidden = 64;
constexpr int64_t kIntermediate = 128;
constexpr int64_t kKvRows = 32;

/// Blocks of 32 inputs: an fp16 scale, then 16 bytes of two codes each.
std::vector<std::byte> random_q4_0(int64_t rows, int64_t cols, Random& random) {
  std::vector<std::byte> data;
  for (int64_t block = 0; block < rows * cols / 32; ++block) {
    const uint16_t scale = f32_to_f16(0.03f + 0.02f * static_cast<float>(random.uniform()));
    std::byte bytes[18];
    std::memcpy(bytes, &scale, 2);
    for (int i = 2; i < 18; ++i) bytes[i] = static_cast<std::byte>(random.integer(0, 255));
    data.insert(data.end(), bytes, bytes + 18);
  }
  return data;
}

}  // namespace

std::string write_tiny_gguf(const std::string& folder) {
  checkpoint::testing::GgufWriter writer;
  writer.set_string("general.architecture", "llama")
      .set_u32("llama.block_count", 2)
      .set_u32("llama.context_length", kTinyContext)
      .set_u32("llama.embedding_length", kHidden)
      .set_u32("llama.feed_forward_length", kIntermediate)
      .set_u32("llama.attention.head_count", 4)
      .set_u32("llama.attention.head_count_kv", 2)
      .set_u32("llama.vocab_size", kTinyVocab)
      .set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .set_f32("llama.rope.freq_base", 10000.0f);
  Random random(7);
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    writer.add_tensor(name + ".weight", DType::kQ4_0, {rows, cols},
                      random_q4_0(rows, cols, random));
  };
  const auto norm = [&](const std::string& name) {
    writer.add_f32(name + ".weight", {kHidden}, std::vector<float>(kHidden, 1.0f));
  };
  matrix("token_embd", kTinyVocab, kHidden);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    matrix(block + "attn_q", kHidden, kHidden);
    matrix(block + "attn_k", kKvRows, kHidden);
    matrix(block + "attn_v", kKvRows, kHidden);
    matrix(block + "attn_output", kHidden, kHidden);
    matrix(block + "ffn_gate", kIntermediate, kHidden);
    matrix(block + "ffn_up", kIntermediate, kHidden);
    matrix(block + "ffn_down", kHidden, kIntermediate);
    norm(block + "attn_norm");
    norm(block + "ffn_norm");
  }
  norm("output_norm");
  std::string path = folder + "/tiny-Q4_0.gguf";
  writer.write(path);
  return path;
}

}  // namespace quire::bench::testing
