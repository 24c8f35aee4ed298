#include "quire/checkpoint/gguf_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "quire/base/error.h"

namespace quire::checkpoint {
namespace {

struct Renaming {
  std::string_view gguf;
  std::string_view hf;
};

constexpr std::array<Renaming, 3> kModelNames = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
}};

// Below "blk.N." and "model.layers.N."
constexpr std::array<Renaming, 11> kLayerNames = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

template <size_t N>
std::string_view renamed(const std::array<Renaming, N>& table, std::string_view gguf) {
  const auto entry = std::ranges::find(table, gguf, &Renaming::gguf);
  return entry == table.end() ? std::string_view() : entry->hf;
}

std::string join(std::string_view a, std::string_view b, std::string_view c = {}) {
  std::string text(a);
  text += b;
  text += c;
  return text;
}

}  // namespace

std::string hf_tensor_name(std::string_view gguf_name) {
  constexpr std::string_view kBlock = "blk.";
  const size_t last_dot = gguf_name.rfind('.');
  if (last_dot == std::string_view::npos) return std::string(gguf_name);
  const auto suffix = gguf_name.substr(last_dot);  // ".weight", ".bias"
  if (suffix != ".weight" && suffix != ".bias") return std::string(gguf_name);
  const auto stem = gguf_name.substr(0, last_dot);
  if (const auto hf = renamed(kModelNames, stem); !hf.empty()) return join(hf, suffix);
  if (!stem.starts_with(kBlock)) return std::string(gguf_name);
  const auto rest = stem.substr(kBlock.size());
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return std::string(gguf_name);
  const auto layer = rest.substr(0, dot + 1);
  const auto hf = renamed(kLayerNames, rest.substr(dot + 1));
  if (hf.empty()) return std::string(gguf_name);
  return join("model.layers.", layer, join(hf, suffix));
}

GgufSource::GgufSource(const GgufFile& file, std::shared_ptr<const MappedFile> mapping)
    : mapping_(std::move(mapping)), path_(file.file()) {
  rope_rows_interleaved_ = file.metadata().string("general.architecture") == "llama";
  tensors_.reserve(file.tensors().size());
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.name == kRopeFreqsTensor) continue;
    StoredTensor stored{hf_tensor_name(tensor.name), tensor.dtype, {}, tensor.bytes, path_};
    for (uint32_t d = tensor.num_dims; d-- > 0;) {
      stored.shape.push_back(static_cast<int64_t>(tensor.dims[d]));
    }
    tensors_.push_back(std::move(stored));
  }
  std::ranges::sort(tensors_, {}, &StoredTensor::name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &StoredTensor::name);
  if (twice != tensors_.end()) {
    throw LoadError(path_, printable(twice->name), "one tensor of this meaning", "two");
  }
}

const StoredTensor* GgufSource::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

std::vector<std::string> GgufSource::names() const {
  std::vector<std::string> all;
  all.reserve(tensors_.size());
  for (const StoredTensor& tensor : tensors_) all.push_back(tensor.name);
  return all;
}

void GgufSource::release(const StoredTensor& tensor) const {
  if (mapping_ != nullptr) mapping_->release(tensor.bytes);
}

}  // namespace quire::checkpoint
