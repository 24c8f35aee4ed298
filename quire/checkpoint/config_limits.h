// Ranges that a model's configuration must lie in, whatever file it comes from.
#pragma once

#include <cstdint>
#include <string_view>

#include "quire/checkpoint/model_config.h"
#include "quire/checkpoint/tensor_source.h"

namespace quire::checkpoint {

// Far above any known model, and low enough that products of two of them stay well inside int64.
inline constexpr int64_t kMaxHidden = 1 << 20;
inline constexpr int64_t kMaxIntermediate = 1 << 24;
inline constexpr int64_t kMaxLayers = 10'000;
inline constexpr int64_t kMaxHeads = 1 << 16;
inline constexpr int64_t kMaxHeadDim = 1024;
inline constexpr int64_t kMaxVocab = 1 << 24;
inline constexpr int64_t kMaxPosition = (int64_t{1} << 31) - 1;

/// What the keys that belong together are called in the file at hand.
struct HeadKeys {
  std::string_view num_heads;
  std::string_view num_kv_heads;
  std::string_view head_dim;
};

/// Fills head_dim (when 0) from the hidden size, then checks that query heads divide into KV heads
/// and that the head dimension is even. Throws LoadError naming `where` and the key.
void complete_heads(ModelConfig& config, std::string_view where, const HeadKeys& keys);

/// Throws LoadError unless low <= value <= high (finite), both ends included.
double checked_number(double value, double low, double high, std::string_view where,
                      std::string_view key);

/// True for the architectures whose configuration is understood in full. Others are passed on under
/// their own name, so that the one complaint is about the architecture.
bool is_known_architecture(std::string_view architecture);

/// Settles tie_word_embeddings by what the tensors say: a head that differs from the embedding is
/// its own, whatever the configuration claims. Throws LoadError when a tensor that must be there is
/// missing.
void settle_tied_head(ModelConfig& config, const TensorSource& tensors);

}  // namespace quire::checkpoint
