#include "tests/golden/tiny_model.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/checkpoint/hf_config.h"
#include "quire/checkpoint/testing/safetensors_writer.h"

namespace quire::golden {
namespace {

constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;

/// SplitMix64 (Steele, Lea and Flood 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += kGamma;
    uint64_t z = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

uint64_t fnv1a64(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return value;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Range {
  float scale;
  float offset;
};

Range range_of(std::string_view name, const std::vector<int64_t>& shape) {
  if (contains(name, "norm")) return {0.5f, 1.0f};
  if (name.ends_with(".bias")) return {0.25f, 0.0f};
  if (contains(name, "embed_tokens") || contains(name, "lm_head")) return {0.5f, 0.0f};
  const float gain = contains(name, "q_proj") || contains(name, "k_proj") ? 2.0f : 1.0f;
  return {std::sqrt(3.0f / static_cast<float>(shape[1])) * gain, 0.0f};
}

TinyTensor make_tensor(const TinyModel& model, const std::string& name,
                       std::vector<int64_t> shape) {
  const Range range = range_of(name, shape);
  SplitMix64 random(fnv1a64(name) ^ (model.seed * kGamma));
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  TinyTensor tensor{.shape = std::move(shape), .values = {}};
  tensor.values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto integer = static_cast<int64_t>(random.next() >> 40) - (int64_t{1} << 23);
    float value = static_cast<float>(integer) * 0x1p-23f * range.scale + range.offset;
    if (model.config.dtype == DType::kBF16) value = bf16_to_f32(f32_to_bf16(value));
    tensor.values.push_back(value);
  }
  return tensor;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::byte> stored_bytes(const TinyTensor& tensor, DType dtype) {
  std::vector<std::byte> bytes(tensor.values.size() * (dtype == DType::kBF16 ? 2 : 4));
  if (dtype != DType::kBF16) {
    std::memcpy(bytes.data(), tensor.values.data(), bytes.size());
    return bytes;
  }
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    const uint16_t half = f32_to_bf16(tensor.values[i]);
    std::memcpy(bytes.data() + 2 * i, &half, 2);
  }
  return bytes;
}

}  // namespace

std::vector<TinyModel> tiny_models() {
  const std::string path = QUIRE_SOURCE_DIR "/tests/golden/data/tiny_models.json";
  std::vector<TinyModel> models;
  const boost::json::value list = boost::json::parse(read_text(path));
  for (const boost::json::value& entry : list.as_array()) {
    TinyModel model;
    model.name = entry.at("name").as_string();
    model.seed = static_cast<uint64_t>(entry.at("seed").as_int64());
    model.shards = entry.at("shards").as_int64();
    model.config_json = boost::json::serialize(entry.at("config"));
    model.config =
        checkpoint::hf_model_config(checkpoint::JsonConfig(model.config_json, model.name));
    models.push_back(std::move(model));
  }
  return models;
}

TinyTensors make_tensors(const TinyModel& model) {
  const checkpoint::ModelConfig& c = model.config;
  TinyTensors tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    tensors[name] = make_tensor(model, name, std::move(shape));
  };
  const auto add_linear = [&](const std::string& name, int64_t out, int64_t in, bool bias) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  };
  add("model.embed_tokens.weight", {c.vocab_size, c.hidden_size});
  add("model.norm.weight", {c.hidden_size});
  if (!c.tie_word_embeddings) add("lm_head.weight", {c.vocab_size, c.hidden_size});
  const int64_t q = c.num_heads * c.head_dim;
  const int64_t kv = c.num_kv_heads * c.head_dim;
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    add(layer + "input_layernorm.weight", {c.hidden_size});
    add(layer + "post_attention_layernorm.weight", {c.hidden_size});
    add_linear(layer + "self_attn.q_proj", q, c.hidden_size, c.attention_bias);
    add_linear(layer + "self_attn.k_proj", kv, c.hidden_size, c.attention_bias);
    add_linear(layer + "self_attn.v_proj", kv, c.hidden_size, c.attention_bias);
    add_linear(layer + "self_attn.o_proj", c.hidden_size, q, c.attention_output_bias);
    add_linear(layer + "mlp.gate_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
    add_linear(layer + "mlp.up_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
    add_linear(layer + "mlp.down_proj", c.hidden_size, c.intermediate_size, c.mlp_bias);
  }
  return tensors;
}

uint64_t checksum(const TinyTensors& tensors) {
  uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors) {
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      sum += uint64_t{std::bit_cast<uint32_t>(tensor.values[i])} * (1 + i % 65521);
    }
  }
  return sum;
}

void write_folder(const TinyModel& model, const std::string& folder) {
  std::ofstream(folder + "/config.json") << model.config_json;
  std::vector<checkpoint::testing::Shard> shards(static_cast<size_t>(model.shards));
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  size_t index = 0;
  for (const auto& [name, tensor] : make_tensors(model)) {
    shards[index++ % shards.size()].writer.add(name, model.config.dtype, tensor.shape,
                                               stored_bytes(tensor, model.config.dtype));
  }
  if (shards.size() == 1) {
    shards[0].writer.write(folder + "/model.safetensors");
  } else {
    checkpoint::testing::write_shards(folder, shards);
  }
}

}  // namespace quire::golden
