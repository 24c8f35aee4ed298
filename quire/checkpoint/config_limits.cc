#include "quire/checkpoint/config_limits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::checkpoint {
namespace {

bool same_numbers(const StoredTensor& a, const StoredTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

}  // namespace

void complete_heads(ModelConfig& config, std::string_view where, const HeadKeys& keys) {
  if (config.num_heads % config.num_kv_heads != 0) {
    throw LoadError(where, keys.num_kv_heads,
                    fmt::format("a divisor of {} ({})", keys.num_heads, config.num_heads),
                    fmt::format("{}", config.num_kv_heads));
  }
  if (config.head_dim == 0) {
    if (config.hidden_size % config.num_heads != 0) {
      throw LoadError(where, keys.num_heads,
                      fmt::format("a divisor of the hidden size {}, or a {}", config.hidden_size,
                                  keys.head_dim),
                      fmt::format("{}", config.num_heads));
    }
    config.head_dim = config.hidden_size / config.num_heads;
  }
  if (config.head_dim < 2 || config.head_dim > kMaxHeadDim || config.head_dim % 2 != 0) {
    throw LoadError(where, keys.head_dim, fmt::format("an even number from 2 to {}", kMaxHeadDim),
                    fmt::format("{}", config.head_dim));
  }
}

double checked_number(double value, double low, double high, std::string_view where,
                      std::string_view key) {
  if (!(value >= low && value <= high)) {
    throw LoadError(where, key, fmt::format("a number from {} to {}", low, high),
                    fmt::format("{}", value));
  }
  return value;
}

bool is_known_architecture(std::string_view architecture) {
  return architecture == "LlamaForCausalLM" || architecture == "Qwen2ForCausalLM" ||
         architecture == "MistralForCausalLM";
}

void settle_tied_head(ModelConfig& config, const TensorSource& tensors) {
  if (!is_known_architecture(config.architecture)) return;
  const StoredTensor* embedding = tensors.find("model.embed_tokens.weight");
  const StoredTensor* head = tensors.find("lm_head.weight");
  if (embedding == nullptr) {
    throw LoadError(tensors.path(), "model.embed_tokens.weight", "a tensor", "none");
  }
  if (head == nullptr && !config.tie_word_embeddings) {
    throw LoadError(tensors.path(), "lm_head.weight",
                    "a tensor, since tie_word_embeddings is false", "none");
  }
  if (head != nullptr && config.tie_word_embeddings && !same_numbers(*embedding, *head)) {
    config.tie_word_embeddings = false;
  }
}

}  // namespace quire::checkpoint
